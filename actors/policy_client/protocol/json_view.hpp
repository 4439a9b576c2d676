#pragma once

// What servers say, as simdjson reads it: no tree is made of thousands of tokens. Private to the
// files that read JSON.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <simdjson.h>

#include "actors/policy_client/protocol/mended_json.hpp"

// GCC 12 takes an empty optional of an element for a use of the element.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace kernelmill {

using json_element = simdjson::dom::element;

using json_found = std::optional<json_element>;

/// A text and its elements, which live as long as it does. Borrows this thread's parser, so that
/// texts of the usual size cost no allocation.
class json_document {
public:
  explicit json_document(std::string_view text)
      : parser_(spare_ ? std::move(spare_) : std::make_unique<simdjson::dom::parser>()) {
    json_element root;
    if (!parser_->parse(text.data(), text.size()).get(root)) root_ = root;
  }

  /// Of an answer: what a server has put into JSON wrongly is mended before it is refused.
  static json_document of_answer(std::string_view text) { return json_document{text, true}; }

  ~json_document() {
    constexpr size_t longest_kept = 1 << 20;
    if (parser_->capacity() <= longest_kept) spare_ = std::move(parser_);
  }

  json_document(const json_document&) = delete;
  json_document& operator=(const json_document&) = delete;

  /// None of a text that is not JSON.
  json_found root() const { return root_; }

private:
  json_document(std::string_view text, bool mend) : json_document(text) {
    json_element root;
    if (!root_ && mend && !parser_->parse(mended_json(text)).get(root)) root_ = root;
  }

  static inline thread_local std::unique_ptr<simdjson::dom::parser> spare_;
  std::unique_ptr<simdjson::dom::parser> parser_;
  json_found root_;
};

/// The value of a key; none where there is no such key, or no object.
inline json_found member(const json_found& x, std::string_view key) {
  json_element value;
  if (!x || (*x)[key].get(value)) return std::nullopt;
  return value;
}

/// The value as a T (std::string_view, double, int64_t, an array ...), if it is one.
template <class T>
std::optional<T> as(const json_found& x) {
  T result;
  if (!x || x->get(result)) return std::nullopt;
  return result;
}

inline bool is_object(const json_found& x) {
  return x && x->is_object();
}

inline std::string text_of(const json_found& x) {
  return std::string{as<std::string_view>(x).value_or(std::string_view{})};
}

/// The elements of an array, if it is one; to loop over them.
inline std::optional<simdjson::dom::array> list_in(const json_found& x) {
  return as<simdjson::dom::array>(x);
}

inline json_found first_of(const json_found& x) {
  json_element value;
  auto list = list_in(x);
  if (!list || list->at(0).get(value)) return std::nullopt;
  return value;
}

inline std::optional<int32_t> token_id_of(const json_found& x) {
  auto value = as<int64_t>(x);
  if (!value || *value < 0 || *value > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*value);
}

/// NaN where there is no number.
inline float logprob_of(const json_found& x) {
  auto value = as<double>(x);
  return value ? static_cast<float>(*value) : std::numeric_limits<float>::quiet_NaN();
}

} // namespace kernelmill

#pragma GCC diagnostic pop

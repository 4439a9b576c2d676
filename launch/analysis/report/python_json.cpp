#include "launch/analysis/report/python_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"

namespace kernelmill::reporting {

namespace {

using json = nlohmann::ordered_json;

/// Puts null, and blanks to keep columns, in place of the words that Python has for numbers.
void replace_words(std::string& text) {
  constexpr std::array<std::string_view, 3> words{"-Infinity", "Infinity", "NaN"};
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted)
      for (auto word : words)
        if (text.compare(i, word.size(), word) == 0) {
          std::string null = "null";
          null.resize(std::max(word.size(), null.size()), ' ');
          text.replace(i, word.size(), null);
          break;
        }
  }
}

tl::unexpected<error> not_json(const std::string& file, const std::string& category,
                               const std::string& text, size_t byte) {
  // The library counts the byte that it could not take from 1.
  auto end = text.begin() + static_cast<ptrdiff_t>(std::min(byte, text.size()));
  auto line = std::count(text.begin(), end, '\n') + 1;
  auto begin = std::find(std::make_reverse_iterator(end), text.rend(), '\n');
  return configuration_error(category,
                             fmt::format("failed to read {}: line {}, column {} is not JSON", file,
                                         line, std::distance(begin.base(), end)),
                             "correct the text there, or write the file again");
}

} // namespace

expected<json> read_python_json(const std::string& file, const std::string& category) {
  auto text = read_file(file);
  if (!text) {
    auto cause = text.error();
    if (cause.hint.empty()) cause.hint = "check the path";
    return tl::unexpected<error>{cause};
  }
  if (nests_deeper(*text))
    return configuration_error(category, "failed to read " + file + ": it nests too deep",
                               "is it the right file?");
  replace_words(*text);
  try {
    return json::parse(*text);
  } catch (const json::parse_error& e) {
    return not_json(file, category, *text, e.byte);
  } catch (const json::out_of_range&) {
    return configuration_error(category, "failed to read " + file + ": a number in it is too large",
                               "correct the file, or write it again");
  }
}

error wrong_type(const std::string& file, const std::string& category, const std::string& where,
                 const char* wanted, const json& got) {
  auto text = got.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40)
    text = std::string{got.type_name()} + " of " + fmt::to_string(text.size()) + " bytes";
  return {fault_class::configuration, category,
          fmt::format("failed to read {}: {} must be {}, not {}", file,
                      where.empty() ? "the document" : where, wanted, text),
          "correct the file, or write it again"};
}

json_object::json_object(const std::string& file, const std::string& category, std::string where,
                         const json& value)
    : file_(file), category_(category), where_(std::move(where)), value_(&value),
      wrong_(std::make_shared<std::optional<error>>()) {
  if (!value.is_object()) *wrong_ = wrong_type(file_, category_, where_, "an object", value);
}

std::string json_object::path(const char* key) const {
  return where_.empty() ? key : where_ + "." + key;
}

const json* json_object::find(const char* key) const {
  if (!value_->is_object()) return nullptr;
  auto at = value_->find(key);
  return at == value_->end() || at->is_null() ? nullptr : &*at;
}

void json_object::complain(const char* key, const char* wanted, const json& got) {
  if (!*wrong_) *wrong_ = wrong_type(file_, category_, path(key), wanted, got);
}

std::optional<bool> json_object::boolean(const char* key) {
  const auto* x = find(key);
  if (!x) return std::nullopt;
  if (x->is_boolean()) return x->get<bool>();
  complain(key, "true or false", *x);
  return std::nullopt;
}

std::optional<double> json_object::number(const char* key) {
  const auto* x = find(key);
  if (!x) return std::nullopt;
  if (x->is_number() && std::isfinite(x->get<double>())) return x->get<double>();
  complain(key, "a number", *x);
  return std::nullopt;
}

std::optional<uint64_t> json_object::whole_number(const char* key) {
  const auto* x = find(key);
  if (!x) return std::nullopt;
  if (x->is_number_integer() && (x->is_number_unsigned() || x->get<int64_t>() >= 0))
    return x->get<uint64_t>();
  complain(key, "a whole number of at least 0", *x);
  return std::nullopt;
}

std::optional<std::string> json_object::text(const char* key) {
  const auto* x = find(key);
  if (!x) return std::nullopt;
  if (x->is_string()) return x->get<std::string>();
  complain(key, "a text", *x);
  return std::nullopt;
}

json_object json_object::object(const char* key) {
  static const json none = json::object();
  const auto* x = find(key);
  if (x && !x->is_object()) {
    complain(key, "an object", *x);
    x = nullptr;
  }
  json_object result{file_, category_, path(key), x ? *x : none};
  result.wrong_ = wrong_;
  return result;
}

} // namespace kernelmill::reporting

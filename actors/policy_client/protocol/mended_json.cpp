#include "actors/policy_client/protocol/mended_json.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD"; // U+FFFD

constexpr std::array<std::string_view, 6> no_numbers = {"-Infinity", "Infinity", "-NaN",
                                                        "NaN",       "nan",      "inf"};

// The code unit of "\u0041" at the front of a text.
std::optional<uint32_t> escaped_unit(std::string_view text) {
  constexpr size_t length = 6;
  if (text.size() < length || !text.starts_with("\\u")) return std::nullopt;
  uint32_t result = 0;
  for (char c : text.substr(2, 4)) {
    auto digit = c >= '0' && c <= '9'   ? c - '0'
                 : c >= 'a' && c <= 'f' ? c - 'a' + 10
                 : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                        : -1;
    if (digit < 0) return std::nullopt;
    result = result << 4 | static_cast<uint32_t>(digit);
  }
  return result;
}

bool is_high(uint32_t unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}

bool is_low(uint32_t unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

class mender {
public:
  explicit mender(std::string_view text) : text_(text) { out_.reserve(text.size() + 64); }

  std::string run() {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    while (!text_.empty())
      if (in_string_)
        step_in_string();
      else
        step_outside();
    return std::move(out_);
  }

private:
  void copy(size_t count) {
    out_ += text_.substr(0, count);
    text_.remove_prefix(count);
  }

  void replace(size_t count, std::string_view by) {
    out_ += by;
    text_.remove_prefix(count);
  }

  void step_outside() {
    for (auto word : no_numbers)
      if (text_.starts_with(word)) return replace(word.size(), "null");
    in_string_ = text_.front() == '"';
    copy(1);
  }

  void step_in_string() {
    auto c = static_cast<unsigned char>(text_.front());
    if (c == '\\') return take_escape();
    if (c < 0x20) {
      constexpr auto hex = "0123456789abcdef";
      const char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      return replace(1, {escape, sizeof escape});
    }
    auto length = c < 0x80 ? 1 : utf8_length(text_.substr(0, 4));
    if (length == 0) return replace(1, no_character);
    in_string_ = c != '"';
    copy(length);
  }

  void take_escape() {
    constexpr size_t unit_length = 6;
    if (auto unit = escaped_unit(text_)) {
      if (!is_high(*unit) && !is_low(*unit)) return copy(unit_length);
      auto next = escaped_unit(text_.substr(unit_length));
      if (is_high(*unit) && next && is_low(*next)) return copy(2 * unit_length);
      return replace(unit_length, no_character);
    }
    constexpr std::string_view short_escapes = "\"\\/bfnrt";
    auto known = text_.size() > 1 && short_escapes.find(text_[1]) != std::string_view::npos;
    if (known) return copy(2);
    replace(1, "\\\\");
  }

  std::string_view text_;
  std::string out_;
  bool in_string_ = false;
};

} // namespace

std::string mended_json(std::string_view text) {
  return mender{text}.run();
}

bool show_mended(std::string& text) {
  auto at = text.find(no_character);
  if (at == std::string::npos) return false;
  static_assert(no_character.size() == replacement.size());
  for (; at != std::string::npos; at = text.find(no_character, at))
    std::copy(replacement.begin(), replacement.end(), text.begin() + static_cast<ptrdiff_t>(at));
  return true;
}

} // namespace kernelmill

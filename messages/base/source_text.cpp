#include "messages/base/source_text.hpp"

#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view utf8_mark = "\xef\xbb\xbf";
constexpr std::string_view little_endian_mark = "\xff\xfe";
constexpr std::string_view big_endian_mark = "\xfe\xff";
constexpr char32_t replacement = 0xfffd;

void append_utf8(std::string& to, char32_t x) {
  auto byte = [&](char32_t value) { to += static_cast<char>(static_cast<unsigned char>(value)); };
  if (x < 0x80) {
    byte(x);
  } else if (x < 0x800) {
    byte(0xc0 | x >> 6);
    byte(0x80 | (x & 0x3f));
  } else if (x < 0x10000) {
    byte(0xe0 | x >> 12);
    byte(0x80 | (x >> 6 & 0x3f));
    byte(0x80 | (x & 0x3f));
  } else {
    byte(0xf0 | x >> 18);
    byte(0x80 | (x >> 12 & 0x3f));
    byte(0x80 | (x >> 6 & 0x3f));
    byte(0x80 | (x & 0x3f));
  }
}

std::string from_utf16(std::string_view text, bool little_endian) {
  std::string result;
  auto unit = [&](size_t at) {
    auto first = static_cast<unsigned char>(text[at]);
    auto second = static_cast<unsigned char>(text[at + 1]);
    return static_cast<char32_t>(little_endian ? second << 8 | first : first << 8 | second);
  };
  for (size_t at = 0; at + 1 < text.size(); at += 2) {
    auto x = unit(at);
    bool high = x >= 0xd800 && x < 0xdc00;
    if (high && at + 3 < text.size())
      if (auto low = unit(at + 2); low >= 0xdc00 && low < 0xe000) {
        append_utf8(result, 0x10000 + ((x - 0xd800) << 10) + (low - 0xdc00));
        at += 2;
        continue;
      }
    append_utf8(result, x >= 0xd800 && x < 0xe000 ? replacement : x);
  }
  return result;
}

std::string with_latin1(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto length = utf8_length(text);
    if (length == 0)
      append_utf8(result, static_cast<unsigned char>(text[0]));
    else
      result.append(text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string with_line_feeds(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r')
      result += text[i];
    else if (i + 1 == text.size() || text[i + 1] != '\n')
      result += '\n';
  }
  return result;
}

} // namespace

std::string normal_source(std::string_view text) {
  std::string converted;
  if (text.starts_with(little_endian_mark) || text.starts_with(big_endian_mark)) {
    converted = from_utf16(text.substr(2), text.starts_with(little_endian_mark));
    text = converted;
  } else if (!is_utf8(text)) {
    converted = with_latin1(text);
    text = converted;
  }
  if (text.starts_with(utf8_mark)) text.remove_prefix(utf8_mark.size());
  return text.find('\r') == text.npos ? std::string{text} : with_line_feeds(text);
}

} // namespace kernelmill

#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

unsigned char byte_at(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

bool continues(std::string_view text, size_t i) {
  return i < text.size() && continues_utf8(text[i]);
}

} // namespace

size_t utf8_length(std::string_view text) noexcept {
  auto c = byte_at(text, 0);
  if (c < 0x80) return 1;
  if (c < 0xc2 || c > 0xf4 || !continues(text, 1)) return 0;
  auto second = byte_at(text, 1);
  if (c < 0xe0) return 2;
  if (!continues(text, 2)) return 0;
  if (c < 0xf0) {
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second >= 0xa0)) return 0;
    return 3;
  }
  if (!continues(text, 3)) return 0;
  if ((c == 0xf0 && second < 0x90) || (c == 0xf4 && second >= 0x90)) return 0;
  return 4;
}

char32_t utf8_character(std::string_view sequence) noexcept {
  if (sequence.size() == 1) return byte_at(sequence, 0);
  char32_t result = byte_at(sequence, 0) & (0x7f >> sequence.size());
  for (size_t i = 1; i < sequence.size(); ++i) result = result << 6 | (byte_at(sequence, i) & 0x3f);
  return result;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    auto length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string_view utf8_prefix(std::string_view text, size_t limit) noexcept {
  if (text.size() <= limit) return text;
  size_t end = limit;
  for (int back = 0; back < 3 && end > 0 && continues(text, end); ++back) --end;
  return text.substr(0, end);
}

} // namespace kernelmill

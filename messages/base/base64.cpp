#include "messages/base/base64.hpp"

#include <algorithm>
#include <cstdint>

namespace kernelmill {

namespace {

constexpr std::string_view plain_letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

} // namespace

std::string to_base64(std::string_view bytes) {
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k)
      word = word << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k)
      result.push_back(k <= count ? plain_letters[word >> (18 - 6 * k) & 63] : '=');
  }
  return result;
}

std::optional<std::string> from_base64(std::string_view text, base64_letters letters) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string result;
  result.reserve(text.size() * 3 / 4);
  uint32_t word = 0;
  unsigned bits = 0;
  for (char c : text) {
    if (letters == base64_letters::any) c = c == '-' ? '+' : c == '_' ? '/' : c;
    auto digit = plain_letters.find(c);
    if (digit == plain_letters.npos) return std::nullopt;
    word = word << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits >= 8) result.push_back(static_cast<char>(word >> (bits -= 8) & 0xff));
  }
  return result;
}

} // namespace kernelmill

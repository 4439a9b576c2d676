#include "messages/digest.hpp"

#include <openssl/sha.h>

namespace kernelmill {

sha256_digest sha256(std::string_view bytes) {
  sha256_digest result;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), result.data());
  return result;
}

std::string to_hex(const unsigned char* bytes, size_t size) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string result(size * 2, '0');
  for (size_t i = 0; i < size; ++i) {
    result[2 * i] = digits[bytes[i] >> 4];
    result[2 * i + 1] = digits[bytes[i] & 15];
  }
  return result;
}

std::string sha256_hex(std::string_view bytes) {
  auto digest = sha256(bytes);
  return to_hex(digest.data(), digest.size());
}

} // namespace kernelmill

#include "messages/base/digest.hpp"

#include <memory>
#include <new>

#include <openssl/evp.h>

namespace kernelmill {

namespace {

// OpenSSL's one-shot call looks the algorithm up each time, which costs more than hashing 1 KiB.
const EVP_MD* algorithm() {
  static const EVP_MD* fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (fetched == nullptr) throw std::bad_alloc{};
  return fetched;
}

EVP_MD_CTX* context() {
  struct free_context {
    void operator()(EVP_MD_CTX* x) const { EVP_MD_CTX_free(x); }
  };
  thread_local std::unique_ptr<EVP_MD_CTX, free_context> mine{EVP_MD_CTX_new()};
  if (!mine) throw std::bad_alloc{};
  return mine.get();
}

} // namespace

sha256_digest sha256(std::string_view bytes) {
  sha256_digest result;
  auto* c = context();
  if (EVP_DigestInit_ex2(c, algorithm(), nullptr) != 1 ||
      EVP_DigestUpdate(c, bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(c, result.data(), nullptr) != 1)
    throw std::bad_alloc{}; // SHA-256 of memory fails for no other reason
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

void sha256_stream::free_context::operator()(void* x) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(x));
}

sha256_stream::sha256_stream() : context_(EVP_MD_CTX_new()) {
  if (!context_ ||
      EVP_DigestInit_ex2(static_cast<EVP_MD_CTX*>(context_.get()), algorithm(), nullptr) != 1)
    throw std::bad_alloc{};
}

void sha256_stream::add(std::string_view bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
}

std::string sha256_stream::hex() {
  sha256_digest result;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), result.data(), nullptr);
  return to_hex(result.data(), result.size());
}

std::string sha256_hex(std::string_view bytes) {
  auto digest = sha256(bytes);
  return to_hex(digest.data(), digest.size());
}

} // namespace kernelmill

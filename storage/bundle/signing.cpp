#include "storage/bundle/signing.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "storage/files.hpp"

namespace kernelmill::bundles {

namespace {

constexpr size_t public_bytes = 32;
constexpr size_t signature_bytes = 64;

struct free_bio {
  void operator()(BIO* x) const { BIO_free_all(x); }
};
struct free_context {
  void operator()(EVP_MD_CTX* x) const { EVP_MD_CTX_free(x); }
};
using bio_ptr = std::unique_ptr<BIO, free_bio>;
using context_ptr = std::unique_ptr<EVP_MD_CTX, free_context>;

const unsigned char* bytes_of(std::string_view x) {
  return reinterpret_cast<const unsigned char*>(x.data());
}

std::optional<std::string> from_hex(std::string_view text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() % 2 != 0) return std::nullopt;
  std::string result;
  for (size_t i = 0; i < text.size(); i += 2) {
    int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    result += static_cast<char>(high * 16 + low);
  }
  return result;
}

// A prompt for a password would wait for ever in a process without a terminal.
int no_password(char*, int, int, void*) {
  return -1;
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  auto size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string{};
}

expected<void> write_new(const std::string& path, std::string_view text, mode_t mode) {
  descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)};
  if (!file && errno == EEXIST)
    return configuration_error("credentials_exist",
                               "failed to write the key " + path + ": the file is there",
                               "use it, or name another file with --out");
  if (!file) return tl::unexpected<error>{file_error(errno, "write", path)};
  KM_TRY(write_all(file.get(), text, path));
  if (::fsync(file.get()) != 0) return tl::unexpected<error>{file_error(errno, "sync", path)};
  return {};
}

expected<std::string> text_of_key(const std::string& path) {
  auto text = read_file(path);
  if (!text && text.error().category == "not_found")
    return configuration_error("credentials_missing", "failed to find the key " + path,
                               "make one: kernelmill bundle keygen --out " + path);
  return text;
}

tl::unexpected<error> bad_key(const std::string& path, const char* kind) {
  return configuration_error("bad_key",
                             "failed to read " + path + ": it holds no " + kind +
                                 " key of Ed25519 without a password, as PEM",
                             "`kernelmill bundle keygen --out FILE` makes FILE and FILE.pub");
}

bool is_ed25519(const key_ptr& key) {
  return key && EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_ED25519;
}

key_ptr private_in(const std::string& text) {
  bio_ptr in{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
  return key_ptr{in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr) : nullptr};
}

} // namespace

void free_key::operator()(evp_pkey_st* x) const noexcept {
  EVP_PKEY_free(x);
}

expected<void> make_key(const std::string& path) {
  key_ptr key{EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")};
  bio_ptr secret{BIO_new(BIO_s_mem())}, open{BIO_new(BIO_s_mem())};
  bool made = key && secret && open &&
              PEM_write_bio_PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                       nullptr) == 1 &&
              PEM_write_bio_PUBKEY(open.get(), key.get()) == 1;
  if (!made) return infrastructure_error("credentials_failed", "failed to make a key of Ed25519");
  // The public half first: a private key without it can still be used, so it comes last.
  KM_TRY(write_new(path + ".pub", text_in(open.get()), 0644));
  if (auto ok = write_new(path, text_in(secret.get()), 0600); !ok) {
    ::unlink((path + ".pub").c_str());
    return ok;
  }
  return {};
}

expected<key_ptr> read_private_key(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && (about.st_mode & 077) != 0)
    return configuration_error("credentials_exposed",
                               "failed to use " + path + ": others may read or write it",
                               "chmod 600 " + path);
  auto text = text_of_key(path);
  KM_TRY(text);
  auto key = private_in(*text);
  if (!is_ed25519(key)) return bad_key(path, "private");
  return key;
}

expected<key_ptr> read_public_key(const std::string& path) {
  auto text = text_of_key(path);
  KM_TRY(text);
  bio_ptr in{BIO_new_mem_buf(text->data(), static_cast<int>(text->size()))};
  key_ptr key{in ? PEM_read_bio_PUBKEY(in.get(), nullptr, no_password, nullptr) : nullptr};
  if (!key) key = private_in(*text);
  if (!is_ed25519(key)) return bad_key(path, "public");
  return key;
}

std::string public_hex(const evp_pkey_st& key) {
  std::array<unsigned char, public_bytes> raw{};
  size_t size = raw.size();
  if (EVP_PKEY_get_raw_public_key(&key, raw.data(), &size) != 1) return {};
  return to_hex(raw.data(), size);
}

expected<key_ptr> public_key_of(std::string_view hex) {
  auto raw = from_hex(hex);
  key_ptr key;
  if (raw && raw->size() == public_bytes)
    key.reset(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(*raw), raw->size()));
  if (!key)
    return configuration_error("bad_key", "failed to read a public key: it is not 64 hex digits");
  return key;
}

expected<std::string> sign(evp_pkey_st& key, std::string_view message) {
  context_ptr context{EVP_MD_CTX_new()};
  std::array<unsigned char, signature_bytes> raw{};
  size_t size = raw.size();
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, &key) != 1 ||
      EVP_DigestSign(context.get(), raw.data(), &size, bytes_of(message), message.size()) != 1)
    return infrastructure_error("credentials_failed", "failed to sign with the key");
  return to_hex(raw.data(), size);
}

bool is_signed(evp_pkey_st& key, std::string_view message, std::string_view signature_hex) {
  auto raw = from_hex(signature_hex);
  context_ptr context{EVP_MD_CTX_new()};
  return raw && raw->size() == signature_bytes && context &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, &key) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(*raw), raw->size(), bytes_of(message),
                          message.size()) == 1;
}

} // namespace kernelmill::bundles

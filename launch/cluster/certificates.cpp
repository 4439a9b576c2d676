#include "launch/cluster/certificates.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace kernelmill::certificates {

namespace {

using bio_ptr = std::unique_ptr<BIO, freed_by<BIO_free>>;
using number_ptr = std::unique_ptr<BIGNUM, freed_by<BN_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>;

constexpr long day_seconds = 24 * 60 * 60;
constexpr long authority_days = 3652;
constexpr long node_days = 730;
// Machines' clocks differ; one that is a little behind must not find the certificate too new.
constexpr long allowed_skew = 60 * 60;

tl::unexpected<error> failed(const std::string& what) {
  return infrastructure_error("credentials_failed", "failed to make " + what + ": " + last_fault());
}

bool set_random_serial(X509* certificate) {
  number_ptr number{BN_new()};
  // 127 bits with the highest set: never zero, never longer than the 20 bytes that are allowed.
  return number && BN_rand(number.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool add_text(X509_NAME* name, const char* field, const std::string& text) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1,
                                    0) == 1;
}

bool set_subject(X509* certificate, const std::string& common_name) {
  auto* name = X509_get_subject_name(certificate);
  return add_text(name, "O", "Kernelmill") && add_text(name, "CN", common_name);
}

struct extension {
  int nid;
  const char* value;
};

template <size_t N>
bool add_extensions(X509* certificate, X509* issuer, const extension (&extensions)[N]) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& x : extensions) {
    extension_ptr made{X509V3_EXT_conf_nid(nullptr, &context, x.nid, x.value)};
    if (!made || X509_add_ext(certificate, made.get(), -1) != 1) return false;
  }
  return true;
}

constexpr extension authority_extensions[] = {
    {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
    {NID_key_usage, "critical,keyCertSign,cRLSign"},
    {NID_subject_key_identifier, "hash"},
};

constexpr extension node_extensions[] = {
    {NID_basic_constraints, "critical,CA:FALSE"},   {NID_key_usage, "critical,digitalSignature"},
    {NID_ext_key_usage, "serverAuth,clientAuth"},   {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"},
};

/// Everything of a new certificate but its names, extensions and signature.
identity begin(long days) {
  identity result;
  result.key.reset(EVP_EC_gen("P-256"));
  certificate_ptr made{X509_new()};
  if (!result.key || !made) return result;
  auto* x = made.get();
  if (X509_set_version(x, X509_VERSION_3) && set_random_serial(x) &&
      X509_gmtime_adj(X509_getm_notBefore(x), -allowed_skew) &&
      X509_gmtime_adj(X509_getm_notAfter(x), days * day_seconds) &&
      X509_set_pubkey(x, result.key.get()))
    result.certificate = std::move(made);
  return result;
}

/// A word that tells one cluster's authority from another's.
std::string random_word() {
  unsigned char bytes[4];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return {};
  char text[2 * sizeof bytes + 1];
  std::snprintf(text, sizeof text, "%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3]);
  return text;
}

template <class Write>
expected<void> write_file(const std::string& path, Write write_pem) {
  auto fail = [&](const std::string& why) {
    return infrastructure_error("io_error", "failed to write " + path + ": " + why);
  };
  // The mode is given when the file is made: there is no moment in which others may read it.
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return fail(std::strerror(errno));
  bio_ptr out{BIO_new_fd(fd, BIO_NOCLOSE)};
  errno = 0;
  bool written = out && write_pem(out.get()) == 1 && BIO_flush(out.get()) == 1;
  written = written && ::fsync(fd) == 0;
  auto why = errno != 0 ? std::string{std::strerror(errno)} : last_fault();
  if (::close(fd) != 0 || !written) return fail(why);
  return {};
}

expected<bio_ptr> open_file(const std::string& path) {
  bio_ptr in{BIO_new_file(path.c_str(), "r")};
  if (!in)
    return configuration_error("credentials_unreadable",
                               "failed to read " + path + ": " + std::strerror(errno),
                               "let the user that runs Kernelmill own it: chown USER " + path);
  return in;
}

tl::unexpected<error> damaged(const std::string& path, const std::string& what) {
  return configuration_error("credentials_damaged",
                             "failed to read " + path + ": it holds no " + what + " in PEM (" +
                                 last_fault() + ")",
                             "copy the file again from the machine that ran "
                             "`kernelmill cluster init`");
}

// Without it OpenSSL would ask for a passphrase on the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

} // namespace

std::string last_fault() {
  auto code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "OpenSSL gives no reason";
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : "OpenSSL error " + std::to_string(code);
}

expected<identity> make_authority() {
  ERR_clear_error();
  auto result = begin(authority_days);
  auto* x = result.certificate.get();
  auto word = random_word();
  if (!x || word.empty() || !set_subject(x, "Kernelmill cluster " + word) ||
      !X509_set_issuer_name(x, X509_get_subject_name(x)) ||
      !add_extensions(x, x, authority_extensions) || !X509_sign(x, result.key.get(), EVP_sha256()))
    return failed("the certificate authority");
  return result;
}

expected<identity> make_node(const identity& authority) {
  ERR_clear_error();
  auto result = begin(node_days);
  auto* x = result.certificate.get();
  auto* issuer = authority.certificate.get();
  if (!x || !set_subject(x, "Kernelmill node") ||
      !X509_set_issuer_name(x, X509_get_subject_name(issuer)) ||
      !add_extensions(x, issuer, node_extensions) ||
      !X509_sign(x, authority.key.get(), EVP_sha256()))
    return failed("the certificate");
  return result;
}

expected<void> write(const std::string& path, X509* certificate) {
  return write_file(path, [&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

expected<void> write(const std::string& path, EVP_PKEY* key) {
  return write_file(path, [&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

expected<certificate_ptr> read_certificate(const std::string& path) {
  ERR_clear_error();
  auto in = open_file(path);
  KM_TRY(in);
  certificate_ptr result{PEM_read_bio_X509(in->get(), nullptr, no_passphrase, nullptr)};
  if (!result) return damaged(path, "certificate");
  return result;
}

expected<key_ptr> read_key(const std::string& path) {
  ERR_clear_error();
  auto in = open_file(path);
  KM_TRY(in);
  key_ptr result{PEM_read_bio_PrivateKey(in->get(), nullptr, no_passphrase, nullptr)};
  if (!result) return damaged(path, "private key without a passphrase");
  return result;
}

std::string day(const ASN1_TIME* time) {
  std::tm parts{};
  char text[16];
  if (ASN1_TIME_to_tm(time, &parts) != 1 || std::strftime(text, sizeof text, "%F", &parts) == 0)
    return "an unknown day";
  return text;
}

std::string fingerprint(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return {};
  std::string result;
  for (unsigned i = 0; i < size; ++i) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", digest[i]);
    result += text;
  }
  return result;
}

} // namespace kernelmill::certificates

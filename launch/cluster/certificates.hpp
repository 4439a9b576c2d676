#pragma once

// OpenSSL's part of the credentials: keys, certificates, and their files.

#include <memory>
#include <string>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "messages/error.hpp"

namespace kernelmill::certificates {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* x) const noexcept {
    Free(x);
  }
};

using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, freed_by<X509_free>>;

/// A certificate with the key that it is for; either null when OpenSSL failed.
struct identity {
  key_ptr key;
  certificate_ptr certificate;
};

/// An authority of ten years that may sign certificates of machines, and no other authority.
expected<identity> make_authority();

/// A certificate of two years, for the end that dials and the end that answers.
expected<identity> make_node(const identity& authority);

/// Writes a file of mode 0600 that is not there yet, and syncs it. The key is not encrypted: a
/// machine that starts alone has no user to ask for a passphrase.
expected<void> write(const std::string& path, X509* certificate);
expected<void> write(const std::string& path, EVP_PKEY* key);

expected<certificate_ptr> read_certificate(const std::string& path);
expected<key_ptr> read_key(const std::string& path);

/// "2028-11-21", in UTC.
std::string day(const ASN1_TIME* time);

/// SHA-256 of the certificate, in hex: what two people compare to know that they have the same.
std::string fingerprint(const X509* certificate);

/// What OpenSSL says last went wrong in this thread.
std::string last_fault();

} // namespace kernelmill::certificates

#pragma once

// Ed25519 by OpenSSL: keys as PEM files, signatures of a list of hashes. A public key that came
// with what it signs shows that nothing was changed since. Only the verifier can know the owner of
// the key.

#include <memory>
#include <string>
#include <string_view>

#include "messages/error.hpp"

struct evp_pkey_st;

namespace kernelmill::bundles {

struct free_key {
  void operator()(evp_pkey_st* x) const noexcept;
};
using key_ptr = std::unique_ptr<evp_pkey_st, free_key>;

/// Writes a new private key to `path` (mode 0600) and its public half to `path`.pub. Errors:
/// "credentials_exist" (one of the files is there), "io_error", "read_only".
expected<void> make_key(const std::string& path);

/// Errors: "credentials_missing", "credentials_exposed" (others may read the file),
/// "bad_key" (it is no Ed25519 key, or has a password).
expected<key_ptr> read_private_key(const std::string& path);

/// Reads a public key, or the public half of a private one. Errors: as above.
expected<key_ptr> read_public_key(const std::string& path);

/// The 32 bytes of the public key as 64 hex digits.
std::string public_hex(const evp_pkey_st& key);
expected<key_ptr> public_key_of(std::string_view hex);

/// 128 hex digits.
expected<std::string> sign(evp_pkey_st& key, std::string_view message);
bool is_signed(evp_pkey_st& key, std::string_view message, std::string_view signature_hex);

} // namespace kernelmill::bundles

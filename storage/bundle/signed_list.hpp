#pragma once

// INTERNAL to storage/bundle: signature.json. What is signed is a word of its own and the SHA-256
// of hashes.json, so that no signature of another purpose fits, and a change of the list can be
// told from one of the signature.

#include <string>
#include <string_view>

#include "storage/bundle/signing.hpp"

namespace kernelmill::bundles {

expected<std::string> signature_text(evp_pkey_st& key, const std::string& list_sha256);

/// Returns the public key that is in it. Errors: "bad_signature", which names the file that was
/// changed, or says that another key signed than `trusted`.
expected<std::string> check_signature(std::string_view text, const std::string& list_sha256,
                                      evp_pkey_st* trusted);

} // namespace kernelmill::bundles

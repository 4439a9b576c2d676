#pragma once

// INTERNAL to storage/bundle: signature.json. What is signed is a word of its own and the SHA-256
// of hashes.json, so that no signature of another purpose fits, and a change of the list can be
// told from one of the signature.

#include <functional>
#include <string>
#include <string_view>

#include "storage/bundle/bundle_file.hpp"
#include "storage/bundle/signing.hpp"

namespace kernelmill::bundles {

expected<std::string> signature_text(evp_pkey_st& key, const std::string& list_sha256);

/// Returns the public key that is in it. Errors: "bad_signature", which names the file that was
/// changed, or says that another key signed than `trusted`.
expected<std::string> check_signature(std::string_view text, const std::string& list_sha256,
                                      evp_pkey_st* trusted);

/// Reads the list of a bundle and checks its signature: all that a reader knows before the files.
/// `signature` reads signature.json, and is asked only where the list may be signed.
expected<read_bundle> open_list(std::string_view list, const limits& most, evp_pkey_st* trusted,
                                const std::function<expected<std::string>()>& signature);

/// What is wrong with a file whose bytes hash to `sha256`; empty: nothing.
std::string wrong_bytes(const listed_file& want, const std::string& sha256);

inline constexpr uint64_t signature_bytes_most = 4096;
inline constexpr uint64_t most_held_bytes = uint64_t{1} << 28; ///< of a file that `take` sees
inline constexpr size_t named_at_most = 20;                    ///< of what is damaged

/// The same as read() of a bundle that is a folder.
expected<read_bundle> read_folder(const std::string& path, const limits& most, evp_pkey_st* trusted,
                                  const file_taker& take);

} // namespace kernelmill::bundles

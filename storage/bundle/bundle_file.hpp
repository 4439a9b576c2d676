#pragma once

// A bundle is one file, F.tar.zst, or a folder, that says of itself what is in it:
//   hashes.json      what it is of, and path, size and SHA-256 of every file, in their order
//   signature.json   Ed25519 over the SHA-256 of hashes.json; only in a signed bundle
//   ...              the files
// The list comes first, so a reader knows what to expect before it takes anything. The same files
// give the same bytes. docs/reference/bundles.md describes both documents.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/json_value.hpp"
#include "storage/bundle/signing.hpp"

namespace kernelmill::bundles {

inline constexpr int bundle_schema_version = 1;
inline constexpr const char* list_path = "hashes.json";
inline constexpr const char* signature_path = "signature.json";

struct listed_file {
  std::string path;
  uint64_t size = 0;
  std::string sha256;
};

/// What verifiers accept at most; a list that promises more is refused before its files are read.
struct limits {
  uint64_t list_bytes = uint64_t{256} << 20;
  uint64_t files = uint64_t{4} << 20;
  uint64_t bytes = uint64_t{64} << 30; ///< of all files, unpacked
};

/// Collects files on the disk beside `path`, then all of them are there at once. In a file the list
/// stands in front. Thread safety: none.
class bundle_writer {
public:
  static expected<bundle_writer> create(const std::string& path);

  /// The same as a folder; it and its parents are made. Errors: "directory_not_empty".
  static expected<bundle_writer> create_folder(const std::string& path);
  bundle_writer(bundle_writer&&) noexcept;
  ~bundle_writer();

  /// REQUIRES: wrong_path(path) is empty, and the path is new. Errors: those of the disk.
  expected<void> add(const std::string& path, std::string_view bytes);

  /// `facts` become keys of hashes.json, ahead of "files". Without `key` there is no signature.
  /// Returns the SHA-256 of hashes.json.
  expected<std::string> finish(const nlohmann::ordered_json& facts, evp_pkey_st* key);

  uint64_t bytes() const noexcept; ///< of all files so far
  const std::vector<listed_file>& files() const noexcept;

private:
  struct state;
  explicit bundle_writer(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

/// Takes the files as they pass, whose bytes are those that the list says. An error ends reading.
using file_taker = std::function<expected<void>(const listed_file& file, std::string_view bytes)>;

struct read_bundle {
  nlohmann::ordered_json list; ///< hashes.json without "files"
  std::string list_sha256;
  std::string public_key; ///< hex; empty: unsigned
  std::vector<listed_file> files;
  uint64_t bytes = 0;
  std::vector<std::string> damaged; ///< what is wrong with which file; empty: all is as listed
};

/// Fails with "directory_not_empty" where no folder of that name can be written: something that is
/// not an empty folder is there.
expected<void> check_free_folder(const std::string& path);

/// Reads all of a bundle, a file or a folder, and compares it with its list; files beyond 256 MiB
/// reach `take` as nothing. Needs no store, and writes nothing. `trusted` must have signed it where
/// it is given. Errors: "not_found" and others of the disk, "bad_bundle" (its shape is not that of
/// a bundle, so that reading cannot go on; the message names the file), "bad_signature".
expected<read_bundle> read(const std::string& path, const limits& most, evp_pkey_st* trusted,
                           const file_taker& take);

/// A list as bytes, and back. Errors: "bad_bundle".
std::string list_text(const nlohmann::ordered_json& facts, const std::vector<listed_file>& files);
struct parsed_list {
  nlohmann::ordered_json facts;
  std::vector<listed_file> files;
};
expected<parsed_list> parse_list(std::string_view text, const limits& most);

} // namespace kernelmill::bundles

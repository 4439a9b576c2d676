#pragma once

// Large texts and binaries by content: zstd files named by the SHA-256 of what they hold
// (artifacts/ab/abcdef....zst). Written to a temporary name, synced and renamed, before the
// record that names them.

#include <string>
#include <string_view>

#include "messages/error.hpp"
#include "messages/lineage.capnp.h"

namespace kernelmill {

/// Texts up to this size stay inside the record that they belong to.
inline constexpr size_t inline_content_bytes = 4096;

/// Thread safety: any number of threads.
class artifact_store {
public:
  explicit artifact_store(std::string directory);

  /// Writes `bytes` unless they are there already. Returns when they are on disk.
  expected<void> put(const std::string& sha256, std::string_view bytes);

  /// Reads and checks the hash. Errors: "not_found", "store_damaged".
  expected<std::string> get(const std::string& sha256) const;

  /// Returns the text of a Content, from the record or from here.
  expected<std::string> text(wire::Content::Reader content) const;

private:
  std::string directory_;
};

} // namespace kernelmill

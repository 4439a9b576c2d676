#pragma once

// Large texts and binaries by content: zstd files named by the SHA-256 of what they hold
// (artifacts/ab/cdef....zst). Written to a temporary name, synced and renamed, before the
// record that names them.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "messages/error.hpp"
#include "messages/lineage.capnp.h"

namespace kernelmill {

/// Texts up to this size stay inside the record that they belong to.
inline constexpr size_t inline_content_bytes = 4096;

/// Returns the part of `completion` that a candidate is. Errors: "store_damaged".
expected<std::string_view> part_of(std::string_view completion, wire::TextSpan::Reader span);

struct artifact {
  std::string_view sha256; ///< 64 lower-case hex digits
  std::string_view bytes;
};

/// Thread safety: any number of threads and processes; copies share what they know.
class artifact_store {
public:
  explicit artifact_store(std::string directory);

  /// Writes `bytes` unless they are there already. Returns when they are on disk. Errors:
  /// "invalid_artifact" (the hash is not that of the bytes), "disk_full", "read_only".
  expected<void> put(const std::string& sha256, std::string_view bytes);

  /// The same for many: each folder is synced once.
  expected<void> put_all(std::span<const artifact> batch);

  /// Reads and checks the hash. Errors: "not_found", "store_damaged".
  expected<std::string> get(const std::string& sha256) const;

  /// Returns the text of a Content, from the record or from here. A candidate is read by
  /// candidate(): it may be a part of the completion.
  expected<std::string> text(wire::Content::Reader content) const;

  /// Returns the candidate of a turn. Errors: those of text(); "store_damaged" when it is said to
  /// lie outside of the completion.
  expected<std::string> candidate(wire::TurnRecord::Reader turn) const;

  /// Keeps the texts that were written or read last in memory, up to `bytes` of them: a follower
  /// of commits reads each text right after it was written. For all copies; off until called.
  void keep_recent(size_t bytes);

  /// Removes temporary files of writers that were killed.
  void remove_leftovers() const;

  const std::string& directory() const noexcept { return directory_; }

private:
  struct knowledge;
  expected<bool> write(const artifact& x, const std::string& path) const;
  std::string path_of(std::string_view sha256) const;

  std::string directory_;
  std::shared_ptr<knowledge> known_;
};

} // namespace kernelmill

#pragma once

// What was built once, by the hash of everything that goes into it. An entry is two files: the
// library and the words of the BuildResult, each renamed into place when whole and checked by
// SHA-256 when read, so processes may share a cache and a damaged entry is merely built again.

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "messages/build.capnp.h"
#include "messages/error.hpp"
#include "messages/message.hpp"

namespace kernelmill {

/// $XDG_CACHE_HOME/kernelmill/build, ~/.cache/kernelmill/build, or /tmp/kernelmill-UID/build when
/// neither can be written.
std::string default_cache_directory();

/// Thread safety: any number of threads.
class build_cache {
public:
  static constexpr uint64_t default_size = uint64_t{2} << 30;

  explicit build_cache(std::string directory, uint64_t most_bytes = default_size);

  const std::string& directory() const noexcept { return directory_; }

  /// Makes the directory, private to this user. Fails with "cache_unwritable".
  expected<void> prepare();

  /// The stored result, with `cached` set; nothing when there is none or it is damaged.
  std::optional<Message<wire::BuildResult>> find(const std::string& key);

  /// Copies a library from a descriptor into place (mode 0444). Returns its SHA-256.
  expected<std::string> store_library(const std::string& key, int source);

  /// Stores the result; one that cannot be stored is only built again one day.
  void store_result(const std::string& key, const Message<wire::BuildResult>& result);

  std::string library_path(const std::string& key) const;

  /// Removes the entries that were used longest ago until the rest fits. Done now and then by
  /// store_result.
  void evict();

private:
  std::string path(const std::string& key, const char* extension) const;

  std::string directory_;
  uint64_t most_bytes_;
  std::atomic<unsigned> stored_ = 0;
};

/// Builds a control of which only success matters, unless it was built under this key before: a
/// mark in the directory says so.
expected<void> build_once(const std::string& directory, const std::string& key,
                          const std::function<expected<void>()>& build);

/// Writes a file under a temporary name beside `path` and renames it.
expected<void> write_atomically(const std::string& path, std::string_view bytes, unsigned mode);

} // namespace kernelmill

#pragma once

// What jobs need that a node may not have: the task's folder and the candidate's library. Both are
// named by their content, so each travels once to each node. Plain files and values, no actors.

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>

#include "messages/cluster.capnp.h"
#include "messages/error.hpp"
#include "messages/message.hpp"

namespace kernelmill {

/// On the head, one for each node: remembers what the node was sent.
class parcel_packer {
public:
  struct needs {
    std::string task_id;
    std::string task_digest;    ///< empty: no task
    std::string task_directory; ///< absolute
    std::string library_sha256; ///< empty: no library
    std::string library_path;
  };

  /// What was sent before the latest `most_remembered` parts is sent again when it is needed.
  explicit parcel_packer(size_t most_remembered = 10'000);

  /// Everything that the node was not sent before. Thread-safe. Errors: "io_error" when a file
  /// cannot be read, "task_changed" when the task's files are no longer those of its digest.
  expected<Message<wire::Parcel>> pack(const needs& x);

  /// The node has lost something: the next parcel holds all of it again.
  void forget(const needs& x);

private:
  void remember(const std::string& digest);

  size_t most_remembered_;
  std::mutex mutex_;
  std::set<std::string> sent_;    // digests
  std::deque<std::string> order_; // the same, oldest first
};

/// A parcel that holds a library alone: what a build sends back.
expected<Message<wire::Parcel>> parcel_of_library(const std::string& sha256,
                                                  const std::string& path);

/// A folder of what came: `tasks/DIGEST/ID/` and `libraries/SHA256.so`. Thread-safe; several
/// processes may share one. Nothing here is synced: a power cut may leave a name with half of its
/// content, so each process looks at what it found here before it uses it, once.
class parcel_shelf {
public:
  /// The oldest libraries go when all of them are larger than `most_bytes`; tasks are small.
  explicit parcel_shelf(std::string directory, uint64_t most_bytes = uint64_t{8} << 30);

  /// Puts the task of a parcel in its place and returns its folder. Errors: "parcel_missing" when
  /// it is neither in the parcel nor here, "parcel_damaged" when its content is not what it is
  /// named.
  expected<std::string> task(wire::Parcel::Reader parcel) const;

  /// The same for the library; returns its path.
  expected<std::string> library(wire::Parcel::Reader parcel) const;

  /// Keeps bytes under their name. Returns their path.
  expected<std::string> keep_library(const std::string& sha256, const void* bytes,
                                     size_t size) const;

private:
  void make_room() const;
  bool is_checked(const std::string& digest) const;
  void note_checked(const std::string& digest) const;
  bool has_library(const std::string& place, const std::string& sha256) const;
  bool has_task(const std::string& place, const std::string& digest) const;

  std::string directory_;
  uint64_t most_bytes_;
  mutable std::atomic<uint64_t> kept_{0}; // libraries, by this process
  mutable std::mutex mutex_;
  mutable std::set<std::string> checked_; // digests of content that this process has seen whole
};

} // namespace kernelmill

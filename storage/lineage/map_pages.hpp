#pragma once

// Pages of a store's map that were read are given back now and then: a process that scans a store
// of 10 GB once would have 10 GB resident otherwise. They stay in the kernel's cache, so a
// reader gets one back by a minor fault. The map only reads a file: nothing is lost.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

#include <lmdb.h>

namespace kernelmill {

/// From the first to the last address of a map that was read; everything between is of the map too.
struct map_range {
  uintptr_t low = std::numeric_limits<uintptr_t>::max(), high = 0;

  void add(const map_range& x);
};

/// Thread safety: any number of threads.
class map_pages {
public:
  /// REQUIRES: the map cannot move meanwhile: a read transaction is open.
  void note(const map_range& where, size_t bytes);

  /// The map has moved, or goes. REQUIRES: there is no reader.
  void forget();

private:
  std::mutex mutex_;
  map_range read_;
  size_t bytes_ = 0; ///< since pages were last given back
};

/// Where one scan has been; tells `pages` now and then, and at its end.
class visited_pages {
public:
  explicit visited_pages(map_pages& pages) : pages_(pages) {}
  ~visited_pages() { tell(); }
  visited_pages(const visited_pages&) = delete;
  visited_pages& operator=(const visited_pages&) = delete;

  /// REQUIRES: `x` lies in the map.
  void add(const MDB_val& x);

  /// The same for a key that was sought: a fault maps what lies around it.
  void add_sought(const MDB_val& x);

private:
  void add(const MDB_val& x, size_t mapped);
  void tell();

  map_pages& pages_;
  map_range read_;
  size_t bytes_ = 0;
};

} // namespace kernelmill

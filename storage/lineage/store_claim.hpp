#pragma once

// The owner of a store's folder: one environment in a process, and one process that writes. Private
// to storage/.

#include <cstdint>
#include <utility>

#include "messages/error.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {

/// Holds the folder while it lives.
class store_claim {
public:
  store_claim() = default;
  ~store_claim();
  store_claim(const store_claim&) = delete;
  store_claim& operator=(const store_claim&) = delete;

  /// Errors: "store_remote_filesystem", "store_locked", those of store_failure(). REQUIRES: once.
  expected<void> take(const store_options& options);

  /// Whether its files still have a name: what is written to a folder that was removed is lost when
  /// the process ends.
  bool is_there() const;

private:
  expected<void> claim(const store_options& options);
  expected<void> lock(const store_options& options);

  int lock_fd_ = -1;
  std::pair<uint64_t, uint64_t> identity_;
  bool claimed_ = false;
};

} // namespace kernelmill

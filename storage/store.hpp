#pragma once

// The lineage store: one LMDB environment per store directory, one writer, any number of
// readers. Values are Cap'n Proto messages behind a 16-byte header (magic, schema version,
// checksum). A record is durable when commit() returns, and counted once: its key is what it is,
// and it is written with NOOVERWRITE. Keys are ordered so that an episode is one range scan.
// docs/reference/store.md describes keys and header byte by byte.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages/error.hpp"
#include "messages/identity.hpp"
#include "messages/lineage.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

inline constexpr uint32_t store_schema_version = 1;

struct store_options {
  std::string directory;
  bool read_only = false;
  uint64_t map_bytes = uint64_t{1} << 30;  ///< first size of the map; grows by doubling
  bool durable = true;                     ///< false (benchmarks and tests): no fsync
};

/// One committed record, alive as long as the read transaction of the callback that gets it.
using record_visitor = std::function<bool(wire::Record::Reader)>;  ///< false stops the scan

/// Thread safety: commit() from one thread at a time; reads from any thread.
class store {
public:
  /// Opens or creates. Errors: "store_newer" (a newer schema version), "store_read_only",
  /// "store_remote_filesystem", "store_locked" (another process writes), "disk_full", "store_damaged".
  static expected<store> open(const store_options& options);

  store(store&&) noexcept;
  store& operator=(store&&) noexcept;
  ~store();

  /// Writes all records in one transaction; answers for each whether it is new. Grows the map
  /// when it is full. On error nothing of the batch is in the store.
  expected<std::vector<bool>> commit(const std::vector<Message<wire::Record>>& batch);

  expected<void> scan_run(const std::string& run, const record_visitor& visit) const;
  expected<void> scan_episode(const std::string& run, uint32_t group, uint32_t member,
                              const record_visitor& visit) const;
  expected<std::optional<Message<wire::Record>>> find_turn(const std::string& turn_id) const;
  expected<std::vector<std::string>> runs() const;

  uint64_t record_count() const;

private:
  struct state;
  explicit store(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill

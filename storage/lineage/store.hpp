#pragma once

// The lineage store: one LMDB environment per store directory, one writer, any number of
// readers. Values are Cap'n Proto messages behind a 16-byte header (magic, schema version, flags,
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

/// 1: all of a turn's texts are inline or artifacts. 2: a candidate may be a part of its
/// completion. 3: a turn may have calls of tools and candidates of an episode's graph, and the
/// outcome `open`.
inline constexpr uint32_t store_schema_version = 3;

/// What a new store says; its first record that needs more raises it.
inline constexpr uint32_t first_schema_version = 2;

struct store_options {
  std::string directory;
  bool read_only = false;
  uint64_t map_bytes = uint64_t{1} << 30; ///< first size of the map; grows by doubling
  bool durable = true;                    ///< false (benchmarks and tests): no fsync
};

/// One committed record, alive as long as the read transaction of the callback that gets it.
using record_visitor = std::function<bool(wire::Record::Reader)>; ///< false stops the scan

/// Thread safety: any number of threads; commits take turns. A visitor may read but not commit.
class store {
public:
  /// Opens or creates; read_only never creates. Errors: "store_newer" (a newer schema version),
  /// "store_read_only", "store_remote_filesystem", "store_locked" (another process writes, or this
  /// one has it open), "not_found", "disk_full", "store_damaged".
  static expected<store> open(const store_options& options);

  store(store&&) noexcept;
  store& operator=(store&&) noexcept;
  ~store();

  /// Writes all records in one transaction; answers for each whether it is new. Grows the map
  /// when it is full. On error nothing of the batch is in the store, and the store can be used
  /// again when the cause is gone. Errors: "invalid_record", "disk_full", "store_read_only".
  expected<std::vector<bool>> commit(const std::vector<Message<wire::Record>>& batch);

  // -- reading: a damaged record ends a scan with "store_damaged" ------------------------------

  /// Visits the run's opening records, then each group: per episode its turns and the episode's
  /// record, at last the group's record; then the run's closing records.
  expected<void> scan_run(const std::string& run, const record_visitor& visit) const;

  /// Visits the run's own records alone: those of its openings, then those of its ends.
  expected<void> scan_openings(const std::string& run, const record_visitor& visit) const;

  /// Visits the turns of an episode in order, then its own record if it has ended.
  expected<void> scan_episode(const std::string& run, uint32_t group, uint32_t member,
                              const record_visitor& visit) const;

  /// Visits the episodes of a group, then its own record if it has ended.
  expected<void> scan_group(const std::string& run, uint32_t group,
                            const record_visitor& visit) const;

  /// Returns the numbers of the groups that have any record, ascending; one seek each.
  expected<std::vector<uint32_t>> groups(const std::string& run) const;

  /// Returns nothing when there is no such turn. Errors: "invalid_turn_id", "store_damaged".
  expected<std::optional<Message<wire::Record>>> find_turn(const std::string& turn_id) const;

  /// Returns the names of all runs, in alphabetical order.
  expected<std::vector<std::string>> runs() const;

  /// Returns the number of records, 0 when it cannot be read.
  uint64_t record_count() const;

private:
  struct state;
  explicit store(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill

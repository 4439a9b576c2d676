#pragma once

// Checks a run's store and all that belongs to it, and repairs what can be: `kernelmill fsck`. It
// trusts neither LMDB's pages nor its indices; the checksums of records decide what is believed.

#include <cstdint>
#include <string>
#include <vector>

#include "storage/run_directory.hpp"

namespace kernelmill {

enum class finding_state : unsigned char {
  note,     ///< nothing is wrong: files that are not needed
  damage,   ///< can be repaired
  repaired, ///< was damage
  lost,     ///< cannot be brought back from what is here
};

/// "note", "damage", "repaired" or "lost".
const char* to_string(finding_state x) noexcept;

struct fsck_finding {
  finding_state state = finding_state::note;
  std::string kind; ///< docs/reference/store.md lists them
  std::string what;
};

struct fsck_report {
  uint64_t records = 0;   ///< of all runs in the store, whole
  uint64_t turns = 0;     ///< of this run
  uint64_t artifacts = 0; ///< that records name and that are whole
  uint64_t lines = 0;     ///< of both journals
  std::vector<fsck_finding> findings;
  std::string quarantine; ///< the folder of what was put aside; empty: nothing

  bool has(finding_state x) const;
};

/// Reads everything that the run has; with `repair` puts damaged files aside and makes anew what
/// can be made: the store from whole records, journals from the store, artifacts from traces. Holds
/// the store's lock meanwhile. Errors: "store_locked" (a process writes it), "store_newer", those
/// of files.
expected<fsck_report> check_run(const run_directory& run, bool repair);

} // namespace kernelmill

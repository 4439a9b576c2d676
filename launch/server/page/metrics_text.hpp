#pragma once

// What Prometheus scrapes: base units, counters that only grow, labels from small fixed sets. No
// episode, candidate or run is a label.

#include <map>
#include <string>

#include "launch/analysis/watch/stored.hpp"

namespace kernelmill::page {

/// What this process itself adds.
struct own_numbers {
  std::string build;
  uint64_t requests = 0, event_readers = 0, events_dropped = 0;
};

/// Keeps what runs that have ended since the start had counted, so that counters never fall.
/// Thread safety: none.
class metrics_table {
public:
  /// The text format of Prometheus, version 0.0.4.
  std::string text(const watch::world& in, const own_numbers& own);

private:
  std::map<std::string, watch::stored_summary> seen_; ///< by directory
};

} // namespace kernelmill::page

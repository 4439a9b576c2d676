#pragma once

// A run's journal (metrics.jsonl) as events. Only the event stream includes it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kernelmill::page {

struct event {
  std::string name; ///< "turn", "group", "run", "live"
  std::string run;
  uint64_t place = 0; ///< in the run's journal, behind it; 0: of no journal
  std::string data;
};
using event_ptr = std::shared_ptr<const event>;

/// The lines of a journal from a place on, whole ones only.
struct journal_part {
  std::vector<event_ptr> events;
  uint64_t next = 0;
  uint64_t left_out = 0; ///< turns
};

/// Reads at most so many bytes. Of turns only the newest become events.
journal_part read_journal(const std::string& path, const std::string& run, uint64_t from,
                          size_t most, size_t newest = SIZE_MAX);

/// The end of the last whole line before a place, which may be within a line that is being written.
uint64_t end_of_lines(const std::string& path, uint64_t place);

/// 0 when it is not there.
uint64_t journal_size(const std::string& path);

} // namespace kernelmill::page

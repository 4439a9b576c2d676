#pragma once

// A run whose store is gone gets a new one from its traces.jsonl: each episode that has ended and
// of which every row is whole, with its turns. Other episodes are done again.

#include <optional>
#include <string>
#include <vector>

#include "messages/error.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

struct restored_run {
  uint64_t episodes = 0, turns = 0;
  uint64_t again = 0;              ///< episodes with a row of which another is missing
  std::vector<std::string> broken; ///< rows that were left out: "FILE:LINE: why"
  std::string kept;                ///< the copy of traces.jsonl
};

/// What the run's configuration says of its rows.
struct restore_options {
  bool retrieves = false;  ///< prompts may show examples, so a first turn must say which: licences
                           ///< ask for them
  uint32_t groups = 1;     ///< of each task
  uint32_t group_size = 1; ///< episodes
};

/// Answers nothing where nothing is to be restored: the store has the run's records, or the run
/// never had any. Copies traces.jsonl and metrics.jsonl first, and commits the run's openings last:
/// until these are there the run is refused as before, so a process that is killed at any moment
/// loses nothing, and another one begins again. Errors: "run_incomplete" (there is no row either,
/// or the manifest lists no tasks), those of the store and of the disk.
expected<std::optional<restored_run>> restore_run(const run_directory& run,
                                                  const restore_options& options);

} // namespace kernelmill

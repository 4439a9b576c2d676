#pragma once

// The winner of a search, measured again. A candidate that was the fastest of many has been lucky,
// too: the figure that made it win is too high. What is told is measured afterwards, by another
// referee, on fresh contents, in a fresh process of the candidate for each evaluation.

#include <optional>
#include <string>
#include <vector>

#include "launch/analysis/searching/search_story.hpp"
#include "launch/config/run_config.hpp"
#include "launch/judging/benching/bench_rows.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

struct measured_winner {
  std::string turn;   ///< "g3.e1.t0"
  std::string sha256; ///< of the candidate
  std::string source, language;
  search::node found;                             ///< as the search measured it
  std::optional<benching::with_interval> speedup; ///< measured again; nothing: not timed
  uint32_t evaluations = 0;                       ///< that it passed again
  std::vector<std::string>
      fallen; ///< faster ones that did not pass again, and why: "g1.e0.t0: ..."
};

/// Measures the fastest candidates again, the fastest first, until one passes all evaluations.
/// Nothing: none of the first three does, or none is verified. Errors: those of the machine.
expected<std::optional<measured_winner>> measure_winner(const run_directory& run,
                                                        const run_config& config,
                                                        const searching::search_story& story);

} // namespace kernelmill::commands

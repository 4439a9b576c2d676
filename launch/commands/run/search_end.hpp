#pragma once

// What a search ends with: its winner, measured again, and how it came to it.

#include <string>

#include "launch/config/run_config.hpp"
#include "messages/base/json_value.hpp"
#include "messages/error.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

struct search_end {
  nlohmann::ordered_json document; ///< as search.json of the run's directory has it
  std::string text;                ///< for people
  bool found = false;              ///< a candidate was verified, and once more at the end
};

/// Measures the winner again and writes search.json and best.EXT into the run's directory, unless
/// that is done already. REQUIRES: the run has finished, and its configuration has a strategy.
/// Errors: those of the machine; the run can be resumed then, and nothing of it is asked again.
expected<search_end> end_search(const run_directory& run, const run_config& config,
                                const std::string& shown_directory);

} // namespace kernelmill::commands

#pragma once

// The grid of a sweep: which runs `run --sweep` makes of the values that keys take.

#include <string>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill::commands {

struct swept_key {
  std::string name; ///< "policy.sampling.temperature"
  std::vector<std::string> values;
};

/// One run of the grid.
struct sweep_point {
  std::string name;                                        ///< of the run
  std::vector<std::pair<std::string, std::string>> values; ///< of each key

  /// As words of a command line.
  std::vector<std::string> overrides() const;
};

/// Reads words such as "tasks.group_size=2,4"; commas within brackets and quotes part no values.
/// Errors: "usage", with the key, for a word without values, a key that is given twice, one that
/// names or places runs, and one that no configuration has.
expected<std::vector<swept_key>> read_sweep(const std::vector<std::string>& words);

/// Every combination, the last key changing first, each with a name of its own that begins with
/// `base` and says its values. Errors: "usage" when there are more than 1,000.
expected<std::vector<sweep_point>> points_of(const std::vector<swept_key>& keys,
                                             const std::string& base);

} // namespace kernelmill::commands

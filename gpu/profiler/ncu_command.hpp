#pragma once

// How ncu is asked for the metrics of a pack.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/profiler/metrics.hpp"

namespace kernelmill {

/// The names that `ncu --query-metrics` lists for a chip, without suffixes. Empty: it listed none.
std::set<std::string, std::less<>> read_metric_names(std::string_view listed);

/// ncu's names of a pack. With `known`, of a metric's names the first that this ncu has; without,
/// the first of all. ncu refuses a whole command for one name that it does not know.
std::vector<std::string> ncu_metrics(metric_pack pack,
                                     const std::set<std::string, std::less<>>& known = {});

struct ncu_launches {
  std::string kernel;   ///< a regular expression over demangled names; empty: all
  unsigned skip = 0;    ///< launches to pass over first
  unsigned count = 0;   ///< launches to profile; 0: all
  std::string log_file; ///< for the report; empty: stdout, where the program writes too
  bool marked = false;  ///< only between the program's own cuProfilerStart and cuProfilerStop
};

/// ncu's arguments before the program's own. Clocks are left as they are, values come in base
/// units, and the report is CSV.
std::vector<std::string> ncu_command(std::string_view ncu, const std::vector<std::string>& metrics,
                                     const ncu_launches& which);

} // namespace kernelmill

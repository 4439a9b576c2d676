#pragma once

// What ncu wrote with --csv --page raw: one row a kernel, one column a metric, a row of units below
// the header. Around it lie ncu's own lines ("==PROF==") and whatever the program printed, which is
// not believed.

#include <string>
#include <string_view>
#include <vector>

#include "gpu/profiler/metrics.hpp"

namespace kernelmill {

/// Why there is no profile although ncu ran.
enum class ncu_problem : unsigned char {
  none,
  no_permission, ///< the driver lets only administrators read counters: ERR_NVGPUCTRPERM
  no_profiler,   ///< counters cannot be read here at all
  unknown_metric,
  no_kernels, ///< nothing was launched, or nothing that was asked for
  no_report,  ///< there is no table in the text
};

struct ncu_kernel {
  kernel_metrics metrics;
  unsigned launch = 0;              ///< ncu's "ID", from 0
  std::vector<std::string> missing; ///< columns of ours that hold no number: "n/a", NaN, empty
};

struct ncu_report {
  std::vector<ncu_kernel> kernels; ///< in the order of launches, at most 256
  ncu_problem problem = ncu_problem::none;
  std::string words; ///< ncu's own, on the problem
};

/// Never fails: what cannot be read is a problem of the report.
ncu_report read_ncu_report(std::string_view text);

std::string_view to_string(ncu_problem x);

} // namespace kernelmill

#pragma once

// From the times of candidate and baseline to what is paid. A candidate shares its process with
// every clock but one: the referee's, around the process. So a gain that a clock inside claims is
// paid as far as the processes' own times confirm it.

#include <string>
#include <vector>

#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

/// One run of each, one after the other. Seconds.
struct program_sample {
  double wall_baseline = 0;
  double wall_candidate = 0;
  double inside_baseline = 0; ///< by the clock that the task names; 0: it names the processes' own
  double inside_candidate = 0;
};

struct program_payment {
  speedup_interval paid;
  speedup_interval inside;  ///< as the clock inside says
  speedup_interval outside; ///< of the processes' whole times
  bool confirmed = true;    ///< false: the clock inside claims a gain that the other does not show
  double baseline_seconds = 0; ///< medians of what is paid
  double candidate_seconds = 0;
  std::string note;
};

/// Without a clock inside, the processes' times are paid. With one, a sample pays
/// max(inside_candidate, inside_baseline - (wall_baseline - wall_candidate)). Where that shows no
/// gain beyond its noise and the clock inside does, the speedup is 1.
/// REQUIRES: two samples or more; all times above 0.
program_payment pay_program(const std::vector<program_sample>& samples, bool inside);

} // namespace kernelmill

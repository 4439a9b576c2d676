#include "gpu/referee/disturbance.hpp"

#include <algorithm>
#include <cmath>

#include "gpu/process/standstill.hpp"

namespace kernelmill {

namespace {

constexpr double wait_floor = 5e-6; // seconds
constexpr double wait_share = 0.05;

} // namespace

bool was_disturbed(const call_measure& x, double least_cpu) {
  double own = std::max(0.0, x.cpu_seconds - least_cpu);
  return x.waited - own > std::max(wait_floor, wait_share * x.seconds) || !x.still;
}

bool excused_waits::excuses(bool baseline, bool candidate) {
  baseline_ += baseline ? 1 : 0;
  candidate_ += candidate ? 1 : 0;
  auto theirs = static_cast<double>(baseline_);
  return candidate && static_cast<double>(candidate_) <= theirs + 2 * std::sqrt(theirs + 1) + 1;
}

bool would_not_stop(const call_measure& x) {
  return !x.still && x.late_cpu > standstill::patience / 2;
}

} // namespace kernelmill

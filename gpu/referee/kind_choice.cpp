// Which input patterns a task's timed calls may have. A trusted process says so, once for a task
// and before the first candidate is timed: the choice is the same for all.

#include <limits>

#include "gpu/referee/measured_run.hpp"
#include "gpu/task/timed_kinds.hpp"

namespace kernelmill {

namespace {

const secret_seed tried_seed{0x6b, 0x69, 0x6e, 0x64}; // fixed, as the choice is
constexpr uint64_t tries = 3;
// Of a bound. Honest arithmetic in another order was seen to take more than twice a baseline's.
constexpr double usable_share = 0.2;

// The least share of its bounds within which the baseline is on a kind: a fifth, all, or none.
expected<double> share_of_bounds(measured_run& run, workload& work, const task_case& kind) {
  auto& baseline = *run.prepared.baseline();
  double result = usable_share;
  work.select(kind);
  for (uint64_t i = 0; i < tries; ++i) {
    work.fill(tried_seed, i);
    work.find_truth();
    baseline.deliver(work, false);
    if (!baseline.call(work, call_deadline_ms, 0))
      return tl::unexpected<error>{
          bad_baseline(run.prepared.spec(), "ended", baseline.process().ending()->fault)};
    while (!work.check(baseline.outputs(), result).pass()) {
      if (result >= 1) return std::numeric_limits<double>::infinity();
      result = 1;
    }
  }
  return result;
}

} // namespace

std::optional<error> choose_patterns(measured_run& run) {
  if (!run.prepared.patterns.empty()) return std::nullopt;
  std::vector<timed_pattern> chosen;
  const auto& spec = run.prepared.spec();
  auto work = run.prepared.make_workload();
  for (const auto& kind : timed_kinds(spec, spec.timed)) {
    auto share = share_of_bounds(run, work, kind);
    if (!share) return share.error();
    if (*share <= usable_share || chosen.empty()) // the task's own comes first
      chosen.push_back({kind, 1});
    else if (*share <= 1)
      chosen.push_back({kind, wide_bound});
  }
  run.prepared.patterns = std::move(chosen);
  return std::nullopt;
}

} // namespace kernelmill

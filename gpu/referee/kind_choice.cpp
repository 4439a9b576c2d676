// Which contents a task's timed calls may have. A trusted process says so, once for a task and
// before the first candidate is timed: the choice is the same for all.

#include "gpu/referee/judge_run.hpp"
#include "gpu/task/timed_kinds.hpp"

namespace kernelmill {

namespace {

const secret_seed tried_seed{0x6b, 0x69, 0x6e, 0x64}; // fixed, as the choice is
constexpr uint64_t tries = 3;
// Of a bound. Honest arithmetic in another order was seen to take more than twice a baseline's.
constexpr double usable_share = 0.2;

} // namespace

std::optional<error> choose_kinds(judged_run& run) {
  auto& chosen = run.prepared.kinds;
  if (!chosen.empty()) return std::nullopt;
  const auto& spec = run.prepared.spec();
  auto& baseline = *run.prepared.baseline();
  auto work = run.prepared.make_workload();
  for (const auto& kind : timed_kinds(spec, spec.timed)) {
    bool usable = true;
    work.select(kind);
    for (uint64_t i = 0; i < tries && usable; ++i) {
      work.fill(tried_seed, i);
      work.find_truth();
      baseline.deliver(work, false);
      if (!baseline.call(work, call_deadline_ms, 0))
        return bad_baseline(spec, "ended", baseline.process().ending()->fault);
      usable = work.check(baseline.outputs(), usable_share).pass();
    }
    if (usable || chosen.empty()) chosen.push_back(kind); // the task's own comes first
  }
  return std::nullopt;
}

} // namespace kernelmill

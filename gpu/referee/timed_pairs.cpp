#include "gpu/referee/timed_pairs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gpu/referee/disturbance.hpp"

namespace kernelmill {

namespace {

constexpr double going_on = 20e-6; // seconds of a processor around a call: to start, and to stop
constexpr int meetings = 3;        // with a kind whose pairs are disturbed

// Threads that have ended by then show in the time of processors.
bool works_in_parallel(const call_measure& x) {
  return x.threads > 1 || x.cpu_seconds > 1.25 * x.seconds + going_on;
}

} // namespace

std::optional<pair_times> meet_kind(const std::function<bool(pair_times&)>& take,
                                    const std::function<bool()>& expired) {
  pair_times met;
  for (int i = 0; i < meetings && (i == 0 || (met.disturbed && !expired())); ++i) {
    pair_times times;
    if (!take(times)) return std::nullopt;
    if (i > 0 && times.disturbed) {
      times.reference = std::min(times.reference, met.reference);
      times.candidate = std::min(times.candidate, met.candidate);
    }
    met = times;
  }
  return met;
}

bool timed_pairs::take(const task_case& kind, bool reference_first, pair_times& times,
                       double share) {
  fill(kind);
  bool taken = reference_first ? time_reference(times) && time_candidate(times, share)
                               : time_candidate(times, share) && time_reference(times);
  times.candidate_disturbed =
      excused_.excuses(times.reference_disturbed, times.candidate_disturbed);
  times.disturbed = times.reference_disturbed || times.candidate_disturbed;
  return taken;
}

bool timed_pairs::check_alone(const task_case& kind, double& seconds) {
  fill(kind);
  call_measure measure;
  if (!run_.call_candidate(true, measure)) {
    run_.record.correct = false;
    return false;
  }
  seconds = without_fixed(measure.seconds);
  return is_right(wide_bound);
}

void timed_pairs::fill(const task_case& kind) {
  run_.work.select(kind);
  run_.work.fill(run_.record.seed, next_call_++);
  run_.work.find_truth();
}

// What an empty call of a trusted process costs is in both figures and of nobody's doing.
double timed_pairs::without_fixed(double seconds) const {
  return seconds - std::min(fixed_, largest_fixed_share * seconds);
}

bool timed_pairs::time_reference(pair_times& times) {
  auto& baseline = *run_.prepared.baseline();
  baseline.deliver(run_.work, true);
  auto done = baseline.call(run_.work, call_deadline_ms, run_.next_order());
  if (!done) {
    run_.record.fault =
        bad_baseline(run_.prepared.spec(), "ended", baseline.process().ending()->fault);
    return false;
  }
  times.reference = without_fixed(done->seconds);
  times.reference_disturbed = was_disturbed(*done, done->cpu_seconds);
  ++run_.record.timing.baseline.calls;
  run_.record.timing.baseline.disturbed += times.reference_disturbed ? 1 : 0;
  times.reference_waited = done->waited;
  seen_.in_parallel = seen_.in_parallel || works_in_parallel(*done);
  seen_.reference_late.push_back(done->late_cpu);
  seen_.reference_times.push_back(done->seconds);
  auto result = run_.work.check(baseline.outputs());
  return result.pass() || blame_task("is wrong: " + result.first_bad);
}

bool timed_pairs::time_candidate(pair_times& times, double share) {
  call_measure measure;
  if (!run_.call_candidate(true, measure)) {
    run_.record.correct = false;
    return false;
  }
  times.candidate = without_fixed(measure.seconds);
  least_cpu_ = std::min(least_cpu_, measure.cpu_seconds);
  seen_.in_parallel = seen_.in_parallel || works_in_parallel(measure);
  times.candidate_disturbed = was_disturbed(measure, least_cpu_);
  seen_.worked_on += would_not_stop(measure) ? 1 : 0;
  seen_.measures.push_back(measure);
  return is_right(share);
}

bool timed_pairs::is_right(double share_of_bounds) {
  auto result = run_.work.check(run_.candidate.outputs(), share_of_bounds);
  if (result.pass()) return true;
  auto evidence =
      fmt::format("right in all cases, but call {} at the timed shape is wrong in {} elements: {}",
                  next_call_ - first_timed_call, result.bad, result.first_bad);
  run_.find("wrong_when_timed", severity::critical, evidence);
  run_.record.correct = false;
  run_.record.fault = {fault_class::candidate, "wrong_result", evidence, {}};
  return false;
}

bool timed_pairs::blame_task(const std::string& cause) {
  run_.record.fault = bad_baseline(run_.prepared.spec(), cause);
  return false;
}

} // namespace kernelmill

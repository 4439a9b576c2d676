#include "gpu/referee/timed_pairs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gpu/referee/disturbance.hpp"

namespace kernelmill {

namespace {

constexpr double going_on = 20e-6; // seconds of a processor around a call: to start, and to stop
constexpr size_t fewest_empty = 5;
constexpr size_t latest_empty = 9;
constexpr int meetings = 3; // with a kind whose pairs are disturbed

// Threads that have ended by then show in the time of processors.
bool works_in_parallel(const call_measure& x) {
  return x.threads.size() > 1 || x.cpu_seconds > 1.25 * x.seconds + going_on;
}

// The same ones after each call: a thread that was caught before its end is no such.
bool keeps_threads(const std::vector<call_measure>& calls) {
  return !calls.empty() && calls.front().threads.size() > 1 &&
         std::all_of(calls.begin(), calls.end(),
                     [&](const call_measure& x) { return x.threads == calls.front().threads; });
}

} // namespace

double fixed_cost::now() const {
  if (seen_.size() < fewest_empty) return alone_;
  auto latest = std::min(seen_.size(), latest_empty);
  return bounded({seen_.end() - static_cast<std::ptrdiff_t>(latest), seen_.end()});
}

double fixed_cost::typical() const {
  return seen_.empty() ? alone_ : bounded(seen_);
}

double fixed_cost::without(double seconds, bool threads) const {
  double fixed = threads ? std::min(now(), alone_) : now();
  return seconds - std::min(fixed, largest_fixed_share * seconds);
}

double fixed_cost::bounded(std::vector<double> times) const {
  return std::min(median(std::move(times)), most_);
}

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
  if (!time_empty()) return false;
  bool taken = reference_first ? time_reference(times, share) && time_candidate(times, share)
                               : time_candidate(times, share) && time_reference(times, share);
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
  seconds = without_fixed(measure);
  return is_right(wide_bound);
}

void timed_pairs::fill(const task_case& kind) {
  run_.work.select(kind);
  run_.work.fill(run_.record.seed, next_call_++);
  run_.work.find_truth();
}

void timed_pairs::settle() {
  excused_ = {};
  const auto& late = seen_.reference_late;
  if (!late.empty()) seen_.stopping_price = *std::min_element(late.begin(), late.end());
  auto& baseline = *run_.prepared.baseline();
  if (seen_.reference_in_parallel) { // it is woken on any core, so the candidate is, too
    baseline.use_cores(core_choice::any);
    run_.candidate.use_cores(core_choice::any);
    return;
  }
  empty_calls_.forget();
  baseline.use_cores(core_choice::beside);
  // Threads that it has keep the slot's cores beside its main thread; those that it starts in each
  // call would have that one's core alone.
  seen_.candidate_apart = seen_.candidate_in_parallel && !keeps_threads(seen_.measures);
  run_.candidate.use_cores(seen_.candidate_apart ? core_choice::apart : core_choice::beside);
}

bool timed_pairs::time_empty() {
  auto& baseline = *run_.prepared.baseline();
  auto seconds = baseline.empty_call(&run_.work);
  if (!seconds) {
    run_.record.fault =
        bad_baseline(run_.prepared.spec(), "ended", baseline.process().ending()->fault);
    return false;
  }
  empty_calls_.add(*seconds);
  return true;
}

bool timed_pairs::time_reference(pair_times& times, double share) {
  auto& baseline = *run_.prepared.baseline();
  baseline.deliver(run_.work, true);
  auto done = baseline.call(run_.work, call_deadline_ms, run_.next_order());
  if (!done) {
    run_.record.fault =
        bad_baseline(run_.prepared.spec(), "ended", baseline.process().ending()->fault);
    return false;
  }
  seen_.reference_in_parallel = seen_.reference_in_parallel || works_in_parallel(*done);
  times.reference = empty_calls_.without(done->seconds, seen_.reference_in_parallel);
  times.reference_disturbed = was_disturbed(*done, done->cpu_seconds);
  ++run_.record.timing.baseline.calls;
  run_.record.timing.baseline.disturbed += times.reference_disturbed ? 1 : 0;
  times.reference_waited = done->waited;
  seen_.reference_late.push_back(done->late_cpu);
  seen_.reference_times.push_back(done->seconds);
  auto result = run_.work.check(baseline.outputs(), share);
  if (result.pass()) return true;
  run_.record.wrong_baseline = call_contents{run_.work.selected(), next_call_ - 1, share};
  return blame_task("is wrong: " + result.first_bad);
}

bool timed_pairs::time_candidate(pair_times& times, double share) {
  call_measure measure;
  if (!run_.call_candidate(true, measure)) {
    run_.record.correct = false;
    return false;
  }
  seen_.candidate_in_parallel = seen_.candidate_in_parallel || works_in_parallel(measure);
  times.candidate = without_fixed(measure);
  least_cpu_ = std::min(least_cpu_, measure.cpu_seconds);
  times.candidate_disturbed = was_disturbed(measure, least_cpu_);
  seen_.worked_on += would_not_stop(measure) ? 1 : 0;
  seen_.measures.push_back(measure);
  return is_right(share);
}

double timed_pairs::without_fixed(const call_measure& candidate) const {
  bool threads = seen_.candidate_in_parallel || seen_.reference_in_parallel;
  return empty_calls_.without(candidate.seconds, threads);
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

#include "gpu/referee/host_batches.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gpu/timing/calibrate.hpp"
#include "gpu/timing/thresholds.hpp"

namespace kernelmill {

namespace {

constexpr double going_on = 20e-6; // seconds of a processor around a call: to start, and to stop
constexpr size_t fewest_empty = 5;
constexpr size_t latest_empty = 9;

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

// -- pure parts ---------------------------------------------------------------------------------

double call_overhead::now() const {
  if (seen_.size() < fewest_empty) return alone_;
  auto latest = static_cast<std::ptrdiff_t>(std::min(seen_.size(), latest_empty));
  return std::min(median({seen_.end() - latest, seen_.end()}), 2 * alone_);
}

double call_overhead::without(double seconds, bool threads) const {
  double fixed = threads ? std::min(now(), alone_) : now();
  return std::max(seconds - fixed, timing::least_share * seconds);
}

void twin_batches::add(double baseline, double candidate, double late) {
  ++calls_;
  baseline_ += baseline;
  candidate_ += candidate;
  late_ += late;
}

// A candidate that is slow has no more of the machine's time than its patterns need.
bool twin_batches::wants_more(size_t wished, size_t patterns) const {
  if (calls_ < patterns) return true;
  return calls_ < wished && baseline_ + candidate_ < timing::longest_host_batch;
}

timing::batch_sample twin_batches::sample(timing::batch_side side, size_t patterns) const {
  bool is_baseline = side == timing::batch_side::baseline;
  double seconds = is_baseline ? baseline_ : candidate_ + std::max(late_, 0.0);
  return {calls_, 0, seconds, seconds, calls_ < patterns};
}

// -- calls --------------------------------------------------------------------------------------

struct host_batches::call_pair {
  call_measure baseline;
  call_measure candidate;
  double baseline_seconds = 0; // without what an empty call takes
  double candidate_seconds = 0;
  bool disturbed = false;
};

bool host_batches::warm_up() {
  auto& baseline = *run_.prepared.baseline();
  baseline.use_cores(core_choice::any);
  double seconds = 0;
  for (size_t i = 0; i < timing::host_warming_calls; ++i) {
    call_pair x;
    if (!take(0, i % 2 == 0, x)) return false;
    seconds = i == 0 ? x.baseline_seconds : std::min(seconds, x.baseline_seconds);
    stopping_price_ = i == 0 ? x.baseline.late_cpu : std::min(stopping_price_, x.baseline.late_cpu);
  }
  calls_ = timing::calls_of(seconds, timing::host_batch_seconds, timing::most_host_calls);
  excused_ = {}; // these calls are not timed, so waits in them excuse none of those that are
  choose_cores();
  for (size_t i = 0; i < fewest_empty; ++i)
    if (!time_empty()) return false;
  return true;
}

// What a candidate starts changes nothing for its baseline.
void host_batches::choose_cores() {
  auto& baseline = *run_.prepared.baseline();
  if (baseline_threads_) { // it is woken on any core, so the candidate is, too
    run_.candidate.use_cores(core_choice::any);
    return;
  }
  empty_.forget();
  baseline.use_cores(core_choice::beside);
  // Threads that it has keep the slot's cores beside its main thread; those that it starts in each
  // call would have that one's core alone.
  candidate_apart_ = candidate_threads_ && !keeps_threads(seen_.candidate);
  run_.candidate.use_cores(candidate_apart_ ? core_choice::apart : core_choice::beside);
}

bool host_batches::make(timing::batch_side side, const timing::batch_order& order, size_t pair,
                        timing::batch_sample& into) {
  if (pair != made_ && !make_both(order, side == timing::batch_side::baseline)) return false;
  made_ = pair;
  into = batch_.sample(side, order.patterns.size());
  return true;
}

// A pair of calls that other programs disturbed is made again, on other contents.
bool host_batches::make_both(const timing::batch_order& order, bool baseline_first) {
  size_t patterns = order.patterns.size();
  batch_.begin();
  baseline_led_.reset();
  auto calls = std::max<size_t>(calls_, patterns);
  if (!time_empty()) return false;
  auto most = calls * timing::tries_a_host_call;
  for (size_t i = 0; i < most && batch_.wants_more(calls, patterns); ++i) {
    if (expired()) break;
    call_pair x;
    bool leads = baseline_first == (i % 2 == 0);
    if (!take(order.patterns[batch_.calls() % patterns], leads, x)) return false;
    if (x.disturbed) continue;
    batch_.add(x.baseline_seconds, x.candidate_seconds, late_work(x));
    if (patterns == 1) note_order(x, leads);
  }
  return true;
}

bool host_batches::take(size_t pattern, bool baseline_first, call_pair& into) {
  const auto& [which, share] = run_.prepared.patterns[pattern];
  run_.work.select(which);
  run_.work.fill(run_.record.seed, next_call_++);
  run_.work.find_truth();
  bool taken = baseline_first ? call_baseline(into, share) && call_candidate(into, share)
                              : call_candidate(into, share) && call_baseline(into, share);
  if (!taken) return false;
  auto& baseline = run_.record.timing.baseline;
  bool theirs = was_disturbed(into.baseline, into.baseline.cpu_seconds);
  bool mine = was_disturbed(into.candidate, least_cpu_);
  ++baseline.calls;
  baseline.disturbed += theirs ? 1 : 0;
  into.disturbed = excused_.excuses(theirs, mine) || theirs;
  return true;
}

bool host_batches::time_empty() {
  auto& baseline = *run_.prepared.baseline();
  auto seconds = baseline.empty_call(&run_.work);
  if (seconds) empty_.add(*seconds);
  if (!seconds)
    run_.record.fault =
        bad_baseline(run_.prepared.spec(), "ended", baseline.process().ending()->fault);
  return seconds.has_value();
}

bool host_batches::call_baseline(call_pair& into, double share) {
  auto& baseline = *run_.prepared.baseline();
  baseline.deliver(run_.work, true);
  auto done = baseline.call(run_.work, call_deadline_ms, run_.next_order());
  if (!done) {
    run_.record.fault =
        bad_baseline(run_.prepared.spec(), "ended", baseline.process().ending()->fault);
    return false;
  }
  into.baseline = *done;
  baseline_threads_ = baseline_threads_ || works_in_parallel(*done);
  into.baseline_seconds = empty_.without(done->seconds, baseline_threads_);
  seen_.baseline.push_back(done->seconds);
  auto result = run_.work.check(baseline.outputs(), share);
  if (result.pass()) return true;
  run_.record.wrong_baseline = call_contents{run_.work.selected(), next_call_ - 1, share};
  run_.record.fault = bad_baseline(run_.prepared.spec(), "is wrong: " + result.first_bad);
  return false;
}

bool host_batches::call_candidate(call_pair& into, double share) {
  auto& x = into.candidate;
  if (!run_.call_candidate(true, x)) {
    run_.record.correct = false;
    return false;
  }
  candidate_threads_ = candidate_threads_ || works_in_parallel(x);
  into.candidate_seconds = empty_.without(x.seconds, candidate_threads_ || baseline_threads_);
  least_cpu_ = least_cpu_ < 0 ? x.cpu_seconds : std::min(least_cpu_, x.cpu_seconds);
  seen_.worked_on += would_not_stop(x) ? 1 : 0;
  slowest_ = std::max(slowest_, x.seconds);
  seen_.candidate.push_back(x);
  auto result = run_.work.check(run_.candidate.outputs(), share);
  if (result.pass()) return true;
  auto evidence =
      fmt::format("right in all cases, but call {} at the timed shape is wrong in {} elements: {}",
                  next_call_ - first_timed_call, result.bad, result.first_bad);
  run_.find("wrong_when_timed", severity::critical, evidence);
  run_.record.correct = false;
  run_.record.fault = {fault_class::candidate, "wrong_result", evidence, {}};
  return false;
}

// What a process does from when it was seen to be done until it stands still, it did not do in its
// call. Some of it is the price of being stopped: a baseline shows it, for a thread.
double host_batches::late_work(const call_pair& x) const {
  double beside = x.baseline.late_cpu;
  double elsewhere = std::max(beside, stopping_price_);
  auto threads = std::min<double>(static_cast<double>(x.candidate.threads.size()),
                                  run_.parts.hardware.cores());
  double price = (candidate_apart_ ? elsewhere : beside) + (threads - 1) * elsewhere;
  return x.candidate.late_cpu + x.candidate.idle_cpu - price;
}

void host_batches::note_order(const call_pair& x, bool baseline_first) {
  if (baseline_first) {
    baseline_led_ = timed_block{{x.baseline_seconds, 0}, {x.candidate_seconds, 0}};
  } else if (baseline_led_) {
    baseline_led_->reference[1] = x.baseline_seconds;
    baseline_led_->candidate[1] = x.candidate_seconds;
    seen_.blocks.push_back(*baseline_led_);
    baseline_led_.reset();
  }
}

} // namespace kernelmill

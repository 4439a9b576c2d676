// A/B timing. Each pair of calls has fresh contents of one kind, the same for both; before each
// call the inputs are written, the outputs poisoned, and all of it evicted from every cache, so
// both find the machine in the same state: data in memory, code warm. That is what a large model's
// kernel finds on a GPU too, and nothing can be kept in a cache from one call to the next. Who is
// not timed is stopped meanwhile: contents become visible when the clock starts.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>

#include "gpu/referee/disturbance.hpp"
#include "gpu/referee/judge_run.hpp"
#include "gpu/referee/scheduling.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t first_timed_call = 1'000; // contents of correctness cases have lower numbers
constexpr double idle_share = 0.01;          // of the calls; who is stopped takes no time at all
constexpr double told_late_share = 0.02;
constexpr double largest_fixed_share = 0.75; // of a call: a clock has noise
constexpr uint32_t met_before_giving_up = 6; // kinds, a pair each: as much as three blocks
constexpr double going_on = 20e-6; // seconds of a processor around a call: to start, and to stop
// Times a bound, for kinds on which the baseline is within that bound and not within a fifth of it:
// an honest candidate is as far from it as from the bounds of the others.
constexpr double wide_bound = 5;
constexpr int meetings = 3; // with a kind whose pairs are disturbed
constexpr size_t fewest_blocks = 2;
constexpr size_t fewest_disturbed = 6;

// Threads that have ended by then show in the time of processors.
bool works_in_parallel(const call_measure& x) {
  return x.threads > 1 || x.cpu_seconds > 1.25 * x.seconds + going_on;
}

bool far_slower(const std::vector<timed_block>& blocks) {
  return !blocks.empty() && estimate_speedup(blocks).high < 0.5;
}

} // namespace

error bad_baseline(const task& x, const std::string& cause) {
  return {fault_class::configuration, "bad_baseline",
          "failed to time task " + x.id + ": its baseline " + cause,
          "run `kernelmill task check " + x.id + (x.backend == "cuda" ? " --backend cuda`" : "`")};
}

error bad_baseline(const task& x, const std::string& what, const error& why) {
  auto result = bad_baseline(x, what + ": " + why.message);
  if (why.cls != fault_class::infrastructure) return result;
  return {why.cls, why.category, result.message, why.hint};
}

namespace {

class timing {
public:
  timing(judged_run& run, double fixed)
      : run_(run), record_(run.record.timing), fixed_(fixed), kinds_(run.prepared.kinds),
        checked_(run.prepared.checked_kinds) {
    for (const auto& kind : kinds_) blocks_.push_back({kind.name, {}});
    for (size_t i = 1; i < kinds_.size() + checked_.size(); ++i) met_order_.push_back(i);
    for (size_t i = met_order_.size(); i > 1; --i)
      std::swap(met_order_[i - 1], met_order_[run_.next_order() % i]);
    std::copy_if(met_order_.begin(), met_order_.end(), std::back_inserter(others_),
                 [&](size_t kind) { return kind < kinds_.size(); });
  }

  void measure() {
    // Two pairs first: pages, thread teams and branch predictors; checked like all others.
    for (int i = 0; i < 2; ++i) {
      pair_times unused;
      if (!pair(0, i == 0, unused)) return;
    }
    bool alone = !in_parallel_; // what has threads needs its cores
    run_.candidate.stay_beside(alone);
    run_.prepared.baseline()->stay_beside(alone);
    started_ = now_seconds();
    if (meet_all_kinds()) take_blocks();
    if (sound() && !is_short_) settle_doubts();
    if (!sound()) return;
    summarize();
    look_for_work_while_stopped();
  }

private:
  struct slow_kind {
    size_t kind;
    double times_slower;
  };

  struct pair_times {
    double reference = 0;
    double candidate = 0;
    double reference_waited = 0;
    bool candidate_disturbed = false;
    bool disturbed = false; // either
  };

  // Each kind once, in an order that nobody knows: so all of them are checked at the timed shape.
  // One pair makes a block, until there are more. A candidate may use up the time of timing where
  // it is slow, and that leaves no kind out. False when there is no use in going on.
  bool meet_all_kinds() {
    bool reference_first = false;
    for (size_t kind : met_order_) {
      if (run_.expired()) {
        is_short_ = true;
        return false;
      }
      if (kind >= kinds_.size()) {
        if (!check_alone(checked_[kind - kinds_.size()])) return false;
        continue;
      }
      reference_first = !reference_first;
      if (!meet(kind, reference_first)) return false;
      if (met_ >= met_before_giving_up && is_over(0)) return false;
    }
    return true;
  }

  // A pair that was disturbed comes again, or who waits for others would not be timed on its kind;
  // where each is, the shorter calls of either count.
  bool meet(size_t kind, bool reference_first) {
    pair_times met;
    for (int i = 0; i < meetings && (i == 0 || (met.disturbed && !run_.expired())); ++i) {
      pair_times times;
      if (!pair(kind, reference_first, times)) return false;
      if (i > 0 && times.disturbed) {
        times.reference = std::min(times.reference, met.reference);
        times.candidate = std::min(times.candidate, met.candidate);
      }
      met = times;
    }
    blocks_[kind].blocks.push_back(
        {{met.reference, met.reference}, {met.candidate, met.candidate}});
    ++met_;
    disturbed_blocks_ += met.disturbed ? 1 : 0;
    return true;
  }

  // Every other block has the task's own kind, the rest take turns. Kinds that are checked alone
  // come in between by chance, or who counts calls would know when they are over.
  void take_blocks() {
    for (size_t i = 0; !is_over(now_seconds() - started_); ++i) {
      if (!checked_.empty() && !run_.expired() && run_.next_order() % 2 == 0 &&
          !check_alone(checked_[run_.next_order() % checked_.size()]))
        return;
      size_t kind = i % 2 == 0 || others_.empty() ? 0 : others_[i / 2 % others_.size()];
      if (!take_block(kind)) return;
    }
  }

  bool take_block(size_t kind) {
    timed_block block{};
    if (!undisturbed_pair(kind, true, block, 0)) return false;
    if (!undisturbed_pair(kind, false, block, 1)) {
      // Who used up the time in the first pair does not lose it.
      block.reference[1] = block.reference[0];
      block.candidate[1] = block.candidate[0];
      blocks_[kind].blocks.push_back(block);
      return false;
    }
    blocks_[kind].blocks.push_back(block);
    ordered_.push_back(block);
    return true;
  }

  bool is_over(double elapsed) {
    auto rule = run_.options.stopping;
    rule.min_blocks += met_;
    rule.max_blocks += met_;
    record_.note = stop_reason(all_blocks(), rule, elapsed);
    return !record_.note.empty();
  }

  std::vector<timed_block> all_blocks() const {
    std::vector<timed_block> result;
    for (const auto& x : blocks_) result.insert(result.end(), x.blocks.begin(), x.blocks.end());
    return result;
  }

  bool sound() const { return run_.record.correct && run_.record.fault.cls == fault_class::none; }

  bool out_of_time() {
    if (!run_.expired() && now_seconds() - started_ <= run_.options.stopping.budget_seconds)
      return false;
    record_.note = "the time budget is spent";
    return true;
  }

  // Repeats a pair in which one of the two had to wait for a core that somebody else had: which of
  // them it hits depends on where the scheduler has put them, and stays so for a whole
  // evaluation. Such time is never subtracted, only measured again with contents of the same kind,
  // so nobody gains by waiting.
  bool undisturbed_pair(size_t kind, bool reference_first, timed_block& block, int index) {
    while (!out_of_time()) {
      pair_times times;
      if (!pair(kind, reference_first, times)) return false;
      if (times.disturbed) {
        disturbed_.push_back(
            {{times.reference, times.reference}, {times.candidate, times.candidate}});
        if (ordered_.empty() && disturbed_.size() >= fewest_disturbed && far_slower(disturbed_))
          return false;
        if (out_of_time()) keep_last(kind, times);
        continue;
      }
      block.reference[index] = times.reference;
      block.candidate[index] = times.candidate;
      return true;
    }
    return false;
  }

  // A candidate that used up the time is not rid of its last pair because the baseline had to wait
  // in it: that counts without what the baseline waited, which makes nobody fast.
  void keep_last(size_t kind, const pair_times& times) {
    if (times.candidate_disturbed) return;
    double least = (1 - largest_fixed_share) * times.reference;
    double reference = std::max(times.reference - times.reference_waited, least);
    blocks_[kind].blocks.push_back({{reference, reference}, {times.candidate, times.candidate}});
  }

  // One call of each, on the same fresh contents. False when timing cannot go on.
  bool pair(size_t kind, bool reference_first, pair_times& times) {
    fill(kinds_[kind]);
    return reference_first ? time_reference(times) && time_candidate(times)
                           : time_candidate(times) && time_reference(times);
  }

  void fill(const task_case& kind) {
    run_.work.select(kind);
    run_.work.fill(run_.record.seed, next_call_++);
    run_.work.find_truth();
  }

  // What an empty call of a trusted process costs is in both figures and of nobody's doing.
  double without_fixed(double seconds) const {
    return seconds - std::min(fixed_, largest_fixed_share * seconds);
  }

  bool time_reference(pair_times& times) {
    auto& baseline = *run_.prepared.baseline();
    baseline.deliver(run_.work, true);
    auto done = baseline.call(run_.work, call_deadline_ms, run_.next_order());
    if (!done) return blame_ending(baseline);
    times.reference = without_fixed(done->seconds);
    bool disturbed = was_disturbed(*done, done->cpu_seconds);
    times.disturbed = times.disturbed || disturbed;
    ++record_.baseline.calls;
    record_.baseline.disturbed += disturbed ? 1 : 0;
    times.reference_waited = done->waited;
    in_parallel_ = in_parallel_ || works_in_parallel(*done);
    reference_late_.push_back(done->late_cpu);
    reference_times_.push_back(done->seconds);
    auto result = run_.work.check(baseline.outputs());
    return result.pass() || blame_task("is wrong: " + result.first_bad);
  }

  bool time_candidate(pair_times& times) {
    call_measure measure;
    if (!run_.call_candidate(true, measure)) {
      run_.record.correct = false;
      return false;
    }
    times.candidate = without_fixed(measure.seconds);
    least_cpu_ = std::min(least_cpu_, measure.cpu_seconds);
    in_parallel_ = in_parallel_ || works_in_parallel(measure);
    times.candidate_disturbed = was_disturbed(measure, least_cpu_);
    times.disturbed = times.disturbed || times.candidate_disturbed;
    worked_on_ += would_not_stop(measure) ? 1 : 0;
    measures_.push_back(measure);
    return is_right(1);
  }

  // A call of the candidate alone, on contents of a kind that is not timed. It takes none of the
  // budget: who is slow in it leaves no fewer blocks.
  bool check_alone(const task_case& kind) {
    double started = now_seconds();
    fill(kind);
    call_measure unused;
    if (!run_.call_candidate(true, unused)) {
      run_.record.correct = false;
      return false;
    }
    started_ += now_seconds() - started;
    return is_right(wide_bound);
  }

  bool is_right(double share_of_bounds) {
    auto result = run_.work.check(run_.candidate.outputs(), share_of_bounds);
    if (result.pass()) return true;
    auto evidence = fmt::format(
        "right in all cases, but call {} at the timed shape is wrong in {} elements: {}",
        next_call_ - first_timed_call, result.bad, result.first_bad);
    run_.find("wrong_when_timed", severity::critical, evidence);
    run_.record.correct = false;
    run_.record.fault = {fault_class::candidate, "wrong_result", evidence, {}};
    return false;
  }

  bool blame_task(const std::string& cause) {
    run_.record.fault = bad_baseline(run_.prepared.spec(), cause);
    return false;
  }

  bool blame_ending(slot& baseline) {
    run_.record.fault =
        bad_baseline(run_.prepared.spec(), "ended", baseline.process().ending()->fault);
    return false;
  }

  // Of a dozen kinds, one seems slow by chance. So a kind that seems to be is timed again beside
  // the task's own, and only what shows then is believed. This has a budget of its own, so that
  // nobody is paid for having spent it.
  void settle_doubts() {
    started_ = now_seconds();
    auto note = record_.note;
    // A candidate may be slow where that leaves no time for anything else.
    while (!knows_noise(blocks_) && !far_slower(all_blocks()) && take_block(0)) {
    }
    auto left = blocks_; // kinds that nothing is known against
    while (!all_blocks().empty() && !slow_) {
      auto seen = pay_slowest(left);
      auto name = seen.slowest ? seen.slowest : seen.in_doubt;
      if (!name) break;
      size_t kind = index_of(*name);
      slow_ = slow_kind{kind, seen.times_slower};
      if (kind == 0 || !time_again(kind)) break; // the task's own has blocks enough
      left[0] = blocks_[0];
      left[kind].blocks.clear();
    }
    record_.note = note;
  }

  // False when there was no time for it.
  bool time_again(size_t kind) {
    auto before = blocks_[0];
    kind_blocks own{blocks_[0].name, {}};
    kind_blocks other{blocks_[kind].name, {}};
    for (size_t i = 0; i < confirming_blocks; ++i) {
      if (!take_block(0) || !take_block(kind)) return false;
      own.blocks.push_back(blocks_[0].blocks.back());
      other.blocks.push_back(blocks_[kind].blocks.back());
    }
    auto seen = pay_slowest({own, other});
    blocks_[kind] = other;
    if (seen.slowest == other.name)
      slow_ = slow_kind{kind, seen.times_slower};
    else
      keep_slower(kind, before, own);
    return true;
  }

  // Which kinds come tells who counts them that one is timed again. Who is then as slow on the
  // task's own is paid for that.
  void keep_slower(size_t kind, const kind_blocks& before, const kind_blocks& own) {
    auto again = blocks_[kind];
    again.blocks.insert(again.blocks.end(), own.blocks.begin(), own.blocks.end());
    auto seen = pay_slowest({before, again});
    slow_.reset();
    if (seen.slowest != again.name) return;
    slow_ = slow_kind{kind, seen.times_slower};
    blocks_[kind] = again;
  }

  size_t index_of(const std::string& name) const {
    auto found = std::find_if(blocks_.begin(), blocks_.end(),
                              [&](const kind_blocks& x) { return x.name == name; });
    return static_cast<size_t>(found - blocks_.begin());
  }

  void summarize() {
    std::vector<double> times;
    for (const auto& x : measures_) times.push_back(x.seconds);
    record_.baseline.behind = median(times) / median(reference_times_);
    if (is_short_) {
      record_.note = "not measured, because the time of the evaluation was spent before all kinds "
                     "of contents were timed";
      return;
    }
    auto pairs = fmt::format("{} pairs were disturbed by other programs", disturbed_.size());
    if (all_blocks().size() < fewest_blocks + disturbed_blocks_) {
      // Long calls are always disturbed on a busy machine. Noise must never make a kernel fast,
      // but what is far slower in spite of it may be called so.
      if (disturbed_.size() < fewest_disturbed || !far_slower(disturbed_)) {
        record_.note = "not measured, because the machine is too busy: " + pairs;
        return;
      }
      blocks_ = {{kinds_[0].name, disturbed_}};
      slow_.reset();
      record_.note = "slower than the reference by far";
    }
    if (!disturbed_.empty()) record_.note += "; " + pairs;
    charge_late_work();
    auto kinds = slow_ ? std::vector<kind_blocks>{blocks_[slow_->kind]} : blocks_;
    auto paid = pay_alike(kinds);
    record_.baseline.blocks = slow_ ? blocks_[slow_->kind].blocks.size() : all_blocks().size();
    record_.baseline.half_width = baseline_half_width(kinds);
    record_.measured = true;
    record_.reference_seconds = paid.reference_seconds;
    record_.candidate_seconds = paid.candidate_seconds;
    record_.by_call = {paid.candidate_seconds, paid.reference_seconds};
    record_.speedup =
        widened(paid.speedup, spread_of_processes(paid.candidate_seconds, paid.reference_seconds));
    tell_kinds();
    look_for_a_slowed_baseline();
    compare_with_roofline();
  }

  // What a process does from when it was seen to be done until it stands still, it did not do in
  // its calls. Some of it is the price of being stopped: a baseline shows it, for a thread.
  void charge_late_work() {
    std::vector<double> late;
    std::vector<double> called;
    uint32_t threads = 1;
    for (const auto& x : measures_) {
      called.push_back(x.seconds);
      late.push_back(x.late_cpu);
      threads = std::max(threads, x.threads);
    }
    threads = std::min<uint32_t>(threads, run_.parts.hardware.cores());
    double excess = trimmed_mean(late) - threads * trimmed_mean(reference_late_);
    record_.late_seconds = std::max(0.0, excess);
    if (record_.late_seconds > told_late_share * trimmed_mean(called))
      record_.note += fmt::format("; {:.4f} ms of a call were worked after it was said to be done",
                                  record_.late_seconds * 1e3);
    for (auto& kind : blocks_)
      for (auto& block : kind.blocks)
        for (auto& seconds : block.candidate) seconds += record_.late_seconds;
  }

  void tell_kinds() {
    for (const auto& kind : blocks_) {
      if (kind.blocks.empty()) continue;
      auto alone = pay_slowest({kind});
      auto calls = static_cast<uint32_t>(2 * kind.blocks.size());
      record_.kinds.push_back({kind.name, alone.candidate_seconds, alone.reference_seconds, calls});
      record_.samples += calls;
    }
    if (!slow_) return;
    run_.find("depends_on_contents", severity::warning,
              fmt::format("slower by a factor of {:.2f} than on other contents where they are {}: "
                          "that is paid",
                          slow_->times_slower, blocks_[slow_->kind].name));
  }

  // Who is called after the candidate must not be slower than who is called before it, by more than
  // the candidate is when it is called second itself: what it leaves behind, heat or a lower clock,
  // then slows the baseline.
  void look_for_a_slowed_baseline() {
    auto slowed = slowed_by_order(ordered_);
    if (!slowed) return;
    for (double* x : {&record_.speedup.low, &record_.speedup.estimate, &record_.speedup.high})
      *x /= *slowed;
    run_.find("slows_baseline", severity::warning,
              fmt::format("the baseline is slower by {:.1f} % after a call of the candidate than "
                          "before it: that is not paid",
                          (*slowed * *slowed - 1) * 100));
  }

  void compare_with_roofline() {
    const auto& x = run_.prepared.spec();
    double bytes = static_cast<double>(x.bytes.evaluate(x.timed.scalars).value_or(0));
    double flops = static_cast<double>(x.flops.evaluate(x.timed.scalars).value_or(0));
    auto& hardware = run_.parts.hardware;
    auto floor = [&] { return hardware.roofline_seconds(bytes, flops, working_set(x, x.timed)); };
    record_.roofline_seconds = floor();
    if (record_.candidate_seconds >= record_.roofline_seconds) return;
    // The peaks may have been measured while others used the machine.
    hardware.measure_again();
    record_.roofline_seconds = floor();
    if (record_.candidate_seconds >= record_.roofline_seconds) return;
    run_.find(
        "impossible_speed", severity::critical,
        fmt::format(
            "{:.6f} ms for {:.0f} bytes and {:.0f} flops; this machine needs {:.6f} ms at least",
            record_.candidate_seconds * 1e3, bytes, flops, record_.roofline_seconds * 1e3));
  }

  // Nobody has let it go on but itself.
  void look_for_work_while_stopped() {
    if (worked_on_ > 0)
      run_.find("ran_while_stopped", severity::critical,
                fmt::format("it worked on for {:.0f} ms and more after it was told to stop, in {} "
                            "of {} calls",
                            standstill::patience * 500, worked_on_, measures_.size()));
    std::vector<double> worked;
    std::vector<double> called;
    for (const auto& x : measures_) {
      worked.push_back(x.idle_cpu);
      called.push_back(x.seconds);
    }
    double share = trimmed_mean(worked) / trimmed_mean(called);
    if (share <= idle_share) return;
    run_.find(
        "ran_while_stopped", severity::critical,
        fmt::format("{:.3f} ms of CPU time before a call, while it was stopped: {:.1f} % of a "
                    "call's",
                    trimmed_mean(worked) * 1e3, share * 100));
  }

  judged_run& run_;
  timing_record& record_;
  double fixed_;
  const std::vector<task_case>& kinds_;   // the task's own first
  const std::vector<task_case>& checked_; // kinds that are not timed
  std::vector<size_t> met_order_; // of all but the own, in secret; those of checked_ behind kinds_
  std::vector<size_t> others_;    // of them those that are timed
  std::vector<kind_blocks> blocks_;    // one entry a kind
  std::vector<timed_block> ordered_;   // of two pairs each, reference first and candidate first
  std::vector<timed_block> disturbed_; // both halves of a block are the one pair
  std::optional<slow_kind> slow_;      // paid alone
  std::vector<call_measure> measures_;
  std::vector<double> reference_late_;
  std::vector<double> reference_times_;
  double least_cpu_ = std::numeric_limits<double>::infinity(); // of the candidate's calls
  bool in_parallel_ = false;
  size_t worked_on_ = 0;        // calls after which it did not stop
  size_t disturbed_blocks_ = 0; // of kinds that were met in disturbed pairs alone
  uint32_t met_ = 0;            // blocks of one pair each
  bool is_short_ = false;       // the evaluation is over, and not all kinds were met
  double started_ = 0;
  uint64_t next_call_ = first_timed_call;
};

} // namespace

void judge_timing(judged_run& run, double overhead_seconds) {
  run.parts.pool.settle();
  run.record.timing.overhead_seconds = overhead_seconds;
  if (auto fault = run.prepared.start_baseline(run.parts.pool)) {
    run.record.fault = *fault;
    return;
  }
  raise_priority(run.candidate.process().pid());
  raise_priority(run.prepared.baseline()->process().pid());
  if (run.prepared.arena() != nullptr) return judge_device_timing(run);
  if (auto fault = choose_kinds(run)) {
    run.record.fault = *fault;
    return;
  }
  double fixed = run.parts.hardware.least_overhead(overhead_seconds);
  run.record.timing.overhead_seconds = fixed;
  timing{run, fixed}.measure();
}

} // namespace kernelmill

// A/B timing. Each pair of calls has fresh contents of one kind, the same for both; before each
// call the inputs are written, the outputs poisoned, and all of it evicted from every cache, so
// both find the machine in the same state: data in memory, code warm. That is what a large model's
// kernel finds on a GPU too, and nothing can be kept in a cache from one call to the next. Who is
// not timed is stopped meanwhile: contents become visible when the clock starts.

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "gpu/referee/device/batch_timing.hpp"
#include "gpu/referee/doubts.hpp"
#include "gpu/referee/kind_looks.hpp"
#include "gpu/referee/paid_kinds.hpp"
#include "gpu/referee/scheduling.hpp"
#include "gpu/referee/stopping.hpp"
#include "gpu/referee/timing_findings.hpp"

namespace kernelmill {

namespace {

constexpr size_t met_beside_own = 3; // kinds
constexpr size_t fewest_blocks = 2;
constexpr size_t fewest_disturbed = 6;
// Seconds for doubts about kinds, however short the budget is: a kind that is still in doubt is
// paid by the few calls it had, which often say nothing.
constexpr double least_to_settle = 0.5;

} // namespace

error bad_baseline(const task& x, const std::string& cause) {
  return {fault_class::configuration, "bad_baseline",
          "failed to time task " + x.id + ": its baseline " + cause,
          "run `kernelmill task check " + x.id +
              (x.terms.backend == "cuda" ? " --backend cuda`" : "`")};
}

error bad_baseline(const task& x, const std::string& what, const error& why) {
  auto result = bad_baseline(x, what + ": " + why.message);
  if (why.cls != fault_class::infrastructure) return result;
  return {why.cls, why.category, result.message, why.hint};
}

namespace {

class host_timing {
public:
  host_timing(measured_run& run, double fixed)
      : run_(run), record_(run.record.timing), pairs_(run, fixed), kinds_(run.prepared.kinds),
        timed_(kinds_.size()), looked_(run.prepared.checked_kinds.size()) {
    const auto& checked = run.prepared.checked_kinds;
    kinds_.insert(kinds_.end(), checked.begin(), checked.end());
    for (const auto& kind : kinds_) blocks_.push_back({kind.name, {}});
    for (size_t i = 1; i < kinds_.size(); ++i) met_order_.push_back(i);
    for (size_t i = met_order_.size(); i > 1; --i)
      std::swap(met_order_[i - 1], met_order_[run_.next_order() % i]);
    std::copy_if(met_order_.begin(), met_order_.end(), std::back_inserter(others_),
                 [&](size_t kind) { return kind < timed_; });
  }

  void measure() {
    // Two pairs first: pages, thread teams and branch predictors; checked like all others.
    run_.prepared.baseline()->use_cores(core_choice::any);
    for (int i = 0; i < 2; ++i) {
      pair_times unused;
      if (!pairs_.take(kinds_[0], i == 0, unused)) return;
    }
    pairs_.settle();
    bool met = meet_all_kinds();
    started_ = now_seconds();
    if (met) take_blocks();
    if (sound() && !is_short_ && record_.note != hopeless) settle();
    if (!sound()) {
      record_.until_ended = shown_until_ended(blocks_);
      return;
    }
    summarize();
    look_for_work_while_stopped(run_, pairs_.seen());
  }

private:
  // Each kind once, in an order that nobody knows: so all of them are checked at the timed shape.
  // One pair makes a block, until there are more. A candidate may use up the time of timing where
  // it is slow, and that leaves no kind out. False when that cannot go on.
  bool meet_all_kinds() {
    bool reference_first = false;
    size_t others = 0;
    for (size_t kind : met_order_) {
      if (run_.expired()) {
        is_short_ = true;
        return false;
      }
      if (kind >= timed_) {
        if (!check_alone(kind)) return false;
        continue;
      }
      reference_first = !reference_first;
      // Beside some of them the task's own, which tells at what pace the machine was.
      if (others++ % met_beside_own == 0 && !meet(0, reference_first)) return false;
      if (!meet(kind, reference_first)) return false;
    }
    return true;
  }

  bool meet(size_t kind, bool reference_first) {
    auto met = meet_kind([&](pair_times& times) { return take_pair(kind, reference_first, times); },
                         [&] { return run_.expired(); });
    if (!met) return false;
    blocks_[kind].blocks.push_back(
        {{met->reference, met->reference}, {met->candidate, met->candidate}, next_place_++});
    ++met_;
    disturbed_blocks_ += met->disturbed ? 1 : 0;
    return true;
  }

  // Every other block has the task's own kind, the rest take turns. Kinds that are checked alone
  // come in between by chance, or who counts calls would know when they are over.
  void take_blocks() {
    for (size_t i = 0; !is_over(now_seconds() - started_); ++i) {
      if (!looked_.empty() && !run_.expired() && run_.next_order() % 2 == 0 &&
          !check_alone(timed_ + run_.next_order() % looked_.size()))
        return;
      size_t kind = i % 2 == 0 || others_.empty() ? 0 : others_[i / 2 % others_.size()];
      if (!take_block(kind)) return;
    }
  }

  bool take_block(size_t kind) {
    timed_block block{};
    block.place = next_place_++;
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
    record_.note = stop_reason(all_of(blocks_), rule, elapsed);
    return !record_.note.empty();
  }

  bool sound() const { return run_.record.correct && run_.record.fault.cls == fault_class::none; }

  bool out_of_time() {
    if (!run_.expired() && now_seconds() - started_ <= budget_) return false;
    record_.note = "the time budget is spent";
    return true;
  }

  // Repeats a pair in which one of the two had to wait for a core that somebody else had: which of
  // them it hits depends on where the scheduler has put them, and stays so for a whole
  // evaluation. Such time is never subtracted, only measured again with contents of the same kind,
  // and for the candidate no more often than for the baseline, so nobody gains by waiting.
  bool undisturbed_pair(size_t kind, bool reference_first, timed_block& block, int index) {
    while (!out_of_time()) {
      pair_times times;
      if (!take_pair(kind, reference_first, times)) return false;
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
    blocks_[kind].blocks.push_back(
        {{reference, reference}, {times.candidate, times.candidate}, next_place_++});
  }

  // Nearer to its bounds than the others is a kind that is only checked, for a baseline too.
  bool take_pair(size_t kind, bool reference_first, pair_times& times) {
    return pairs_.take(kinds_[kind], reference_first, times, kind < timed_ ? 1 : wide_bound);
  }

  // It takes none of the budget: who is slow in it leaves no fewer blocks.
  bool check_alone(size_t kind) {
    double started = now_seconds();
    double seconds = 0;
    if (!pairs_.check_alone(kinds_[kind], seconds)) return false;
    looked_[kind - timed_].push_back(seconds);
    started_ += now_seconds() - started;
    return true;
  }

  // Contents tell a candidate which kinds are only checked: where it is slow on one, a pair of that
  // is timed. False when timing is over.
  bool meet_slow_looks() {
    std::vector<kind_look> looks;
    for (size_t i = 0; i < looked_.size(); ++i)
      if (!looked_[i].empty()) looks.push_back({timed_ + i, median(looked_[i])});
    std::vector<double> usual;
    for (const auto& x : blocks_[0].blocks)
      usual.insert(usual.end(), std::begin(x.candidate), std::end(x.candidate));
    if (usual.empty()) return true;
    auto slow = slow_kinds(looks, median(usual), [&](size_t kind) -> std::optional<kind_look> {
      if (run_.expired()) return kind_look{kind, {}};
      if (!check_alone(kind)) return std::nullopt;
      return kind_look{kind, looked_[kind - timed_].back()};
    });
    if (!slow) return false;
    for (size_t kind : *slow) {
      is_short_ = is_short_ || run_.expired();
      if (is_short_ || !meet(kind, run_.next_order() % 2 == 0)) return false;
    }
    return true;
  }

  // This has a budget of its own, so that nobody is paid for having spent it.
  void settle() {
    if (!meet_slow_looks()) return;
    started_ = now_seconds();
    budget_ = std::max(budget_, least_to_settle);
    auto note = record_.note;
    slow_ = settle_doubts(blocks_, [this](size_t kind) { return take_block(kind); });
    record_.note = note;
    is_short_ = is_short_ || (run_.expired() && needs_noise(blocks_));
  }

  void summarize() {
    std::vector<double> times;
    for (const auto& x : pairs_.seen().measures) times.push_back(x.seconds);
    record_.baseline.behind = median(times) / median(pairs_.seen().reference_times);
    if (is_short_) {
      record_.note = "not measured, because the time of the evaluation was spent before all kinds "
                     "of contents were timed";
      return;
    }
    auto pairs = fmt::format("{} pairs were disturbed by other programs", disturbed_.size());
    if (all_of(blocks_).size() < fewest_blocks + disturbed_blocks_) {
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
    record_.overhead_seconds = pairs_.fixed();
    charge_late_work();
    auto kinds = slow_ ? std::vector<kind_blocks>{blocks_[slow_->kind]} : blocks_;
    auto paid = pay_after_doubts(blocks_, slow_);
    record_.baseline.blocks = slow_ ? blocks_[slow_->kind].blocks.size() : all_of(blocks_).size();
    record_.baseline.half_width = baseline_half_width(kinds);
    record_.measured = true;
    record_.reference_seconds = paid.reference_seconds;
    record_.candidate_seconds = paid.candidate_seconds;
    record_.by_call = {paid.candidate_seconds, paid.reference_seconds};
    record_.speedup =
        widened(paid.speedup, spread_of_processes(paid.candidate_seconds, paid.reference_seconds));
    tell_kinds();
    look_for_a_slowed_baseline(run_, ordered_);
    compare_with_roofline(run_);
  }

  void charge_late_work() {
    record_.late_seconds = late_work(run_, pairs_.seen());
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
    run_.find(
        "depends_on_contents", severity::warning,
        fmt::format("{:.2f} times slower on contents of the kind {} than on others; the reward "
                    "uses the slower time",
                    slow_->times_slower, blocks_[slow_->kind].name));
  }

  measured_run& run_;
  timing_record& record_;
  timed_pairs pairs_;
  std::vector<task_case> kinds_; // the task's own first; behind those that are timed, the checked
  size_t timed_;
  std::vector<std::vector<double>> looked_; // seconds of calls on those that are checked
  std::vector<size_t> met_order_;           // of all but the own, in secret
  std::vector<size_t> others_;              // of them those that are timed
  std::vector<kind_blocks> blocks_;         // one entry a kind
  std::vector<timed_block> ordered_;   // of two pairs each, reference first and candidate first
  std::vector<timed_block> disturbed_; // both halves of a block are the one pair
  std::optional<slow_kind> slow_;      // paid alone
  size_t next_place_ = 0;              // of a block
  size_t disturbed_blocks_ = 0;        // of kinds that were met in disturbed pairs alone
  uint32_t met_ = 0;                   // blocks of one pair each
  bool is_short_ = false;              // the evaluation is over, and not all kinds were met
  double started_ = 0;
  double budget_ = run_.options.stopping.budget_seconds; // from then on
};

} // namespace

void measure_timing(measured_run& run, double overhead_seconds) {
  run.parts.pool.settle();
  run.record.timing.overhead_seconds = overhead_seconds;
  if (auto fault = run.prepared.start_baseline(run.parts.pool)) {
    run.record.fault = *fault;
    return;
  }
  raise_priority(run.candidate.process().pid());
  raise_priority(run.prepared.baseline()->process().pid());
  if (run.prepared.arena() != nullptr) return measure_batches(run);
  if (auto fault = choose_kinds(run)) {
    run.record.fault = *fault;
    return;
  }
  double fixed = run.parts.hardware.least_overhead(overhead_seconds);
  host_timing{run, fixed}.measure();
}

} // namespace kernelmill

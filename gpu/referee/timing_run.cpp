// A/B timing. Each pair of calls has fresh contents, the same for both; before each call the
// inputs are written, the outputs poisoned, and all of it evicted from every cache, so both find
// the machine in the same state: data in memory, code warm. That is what a large model's kernel
// finds on a GPU too, and nothing can be kept in a cache from one call to the next.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>

#include "gpu/process/descriptor.hpp"
#include "gpu/referee/judge_run.hpp"
#include "gpu/referee/scheduling.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t first_timed_call = 1'000; // contents of correctness cases have lower numbers
constexpr double idle_cpu_floor = 150e-6;    // mean; an idle process was seen to use 5 to 40 us
constexpr double idle_cpu_share = 0.05;      // of the time between two calls
constexpr size_t idle_samples = 4;
constexpr double wait_floor = 5e-6; // seconds
constexpr double wait_share = 0.05;
constexpr size_t fewest_blocks = 2;
constexpr size_t fewest_disturbed = 6;

bool far_slower(const std::vector<timed_block>& blocks) {
  return estimate_speedup(blocks).high < 0.5;
}

} // namespace

error bad_baseline(const task& x, const std::string& cause) {
  return {fault_class::configuration, "bad_baseline",
          "failed to time task " + x.id + ": its baseline " + cause,
          "run `kernelmill task check " + x.id + (x.backend == "cuda" ? " --backend cuda`" : "`")};
}

std::optional<error> start_baseline(referee_parts parts, prepared_task& prepared) {
  auto& baseline = prepared.baseline();
  if (baseline && !baseline->process().ending()) return std::nullopt;
  baseline.reset();
  descriptor library{::open(prepared.baseline_path().c_str(), O_RDONLY | O_CLOEXEC)};
  if (!library)
    return error{fault_class::infrastructure,
                 "library_lost",
                 "failed to open " + prepared.baseline_path() + ": " + std::strerror(errno),
                 {}};
  auto process = parts.pool.take();
  if (!process) return process.error();
  auto made = prepared.make_slot(std::move(*process), library.get());
  if (!made) return made.error();
  if (auto fault = (*made)->load(call_deadline_ms))
    return bad_baseline(prepared.spec(), "does not load: " + fault->message);
  baseline = std::move(*made);
  return std::nullopt;
}

namespace {

class timing {
public:
  explicit timing(judged_run& run) : run_(run), record_(run.record.timing) {}

  void measure() {
    // Two pairs first: pages, thread teams and branch predictors; checked like all others.
    for (int i = 0; i < 2; ++i) {
      pair_times unused;
      if (!pair(i == 0, unused)) return;
    }
    take_blocks();
    // Time that a hypervisor takes from a core is charged to whoever was on it, and looks like work
    // between two calls. So the measurement is made again; what shows again is the candidate's, and
    // one that has stopped meanwhile is paid for what it does without.
    bool again = sound() && idle_work(measures_);
    if (again) {
      blocks_.clear();
      disturbed_.clear();
      measures_.clear();
      take_blocks();
    }
    if (!sound()) return;
    summarize();
    if (again) look_for_background_work();
  }

private:
  struct pair_times {
    double reference = 0;
    double candidate = 0;
    bool disturbed = false;
  };

  void take_blocks() {
    double started = now_seconds();
    do {
      timed_block block{};
      if (!undisturbed_pair(true, started, block, 0) || !undisturbed_pair(false, started, block, 1))
        break;
      blocks_.push_back(block);
      record_.note = stop_reason(blocks_, run_.options.stopping, now_seconds() - started);
    } while (record_.note.empty());
  }

  bool sound() const { return run_.record.correct && run_.record.fault.cls == fault_class::none; }

  // Repeats a pair in which one of the two had to wait for a core that somebody else had: which of
  // them it hits depends on where the scheduler has put them, and stays so for a whole
  // evaluation. Such time is never subtracted, only measured again, so nobody gains by waiting.
  bool undisturbed_pair(bool reference_first, double started, timed_block& block, int index) {
    for (;;) {
      if (run_.expired() || now_seconds() - started > run_.options.stopping.budget_seconds) {
        record_.note = "the time budget is spent";
        return false;
      }
      pair_times times;
      if (!pair(reference_first, times)) return false;
      if (times.disturbed) {
        disturbed_.push_back(
            {{times.reference, times.reference}, {times.candidate, times.candidate}});
        if (blocks_.empty() && disturbed_.size() >= fewest_disturbed && far_slower(disturbed_))
          return false;
        continue;
      }
      block.reference[index] = times.reference;
      block.candidate[index] = times.candidate;
      return true;
    }
  }

  // One call of each, on the same fresh contents. False when timing cannot go on.
  bool pair(bool reference_first, pair_times& times) {
    run_.work.fill(run_.record.seed, next_call_++);
    run_.work.find_truth();
    return reference_first ? time_reference(times) && time_candidate(times)
                           : time_candidate(times) && time_reference(times);
  }

  static bool was_disturbed(const call_measure& x) {
    return x.waited > std::max(wait_floor, wait_share * x.seconds);
  }

  bool time_reference(pair_times& times) {
    auto& baseline = *run_.prepared.baseline();
    baseline.deliver(run_.work, true);
    auto done = baseline.call(run_.work, call_deadline_ms, run_.next_order());
    if (!done) return blame_task("ended: " + baseline.process().ending()->fault.message);
    times.reference = done->seconds;
    times.disturbed = times.disturbed || was_disturbed(*done);
    auto result = run_.work.check(baseline.outputs());
    return result.pass() || blame_task("is wrong: " + result.first_bad);
  }

  bool time_candidate(pair_times& times) {
    call_measure measure;
    if (!run_.call_candidate(true, measure)) {
      run_.record.correct = false;
      return false;
    }
    times.candidate = measure.seconds;
    times.disturbed = times.disturbed || was_disturbed(measure);
    measures_.push_back(measure);
    auto result = run_.work.check(run_.candidate.outputs());
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

  void summarize() {
    auto pairs = fmt::format("{} pairs were disturbed by other programs", disturbed_.size());
    if (blocks_.size() < fewest_blocks) {
      // Long calls are always disturbed on a busy machine. Noise must never make a kernel fast,
      // but what is far slower in spite of it may be called so.
      if (disturbed_.size() < fewest_disturbed || !far_slower(disturbed_)) {
        record_.note = "not measured, because the machine is too busy: " + pairs;
        return;
      }
      blocks_ = disturbed_;
      record_.note = "slower than the reference by far";
    }
    if (!disturbed_.empty()) record_.note += "; " + pairs;
    std::vector<double> reference;
    std::vector<double> candidate;
    for (const auto& block : blocks_) {
      reference.insert(reference.end(), block.reference, block.reference + 2);
      candidate.insert(candidate.end(), block.candidate, block.candidate + 2);
    }
    record_.measured = true;
    record_.reference_seconds = median(reference);
    record_.candidate_seconds = median(candidate);
    record_.speedup = estimate_speedup(blocks_);
    record_.samples = static_cast<uint32_t>(candidate.size());
    compare_with_roofline();
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

  // What a process does between two calls, nobody has asked for: it may be finishing the call
  // before, or getting ahead of the next.
  void look_for_background_work() {
    auto work = idle_work(measures_);
    if (!work) return;
    run_.find("background_work", severity::critical,
              fmt::format("{:.3f} ms of CPU time between two calls, {:.0f} % of one core",
                          work->mean_seconds * 1e3, work->share * 100));
  }

  struct idle_use {
    double mean_seconds;
    double share; // of one core
  };

  // Sums, not medians: on a busy machine a spinning thread runs in few gaps, and long. Without the
  // longest gap: one alone is an accident.
  static std::optional<idle_use> idle_work(const std::vector<call_measure>& measures) {
    if (measures.size() < idle_samples) return std::nullopt;
    auto longest = std::max_element(
        measures.begin(), measures.end(),
        [](const call_measure& a, const call_measure& b) { return a.idle_cpu < b.idle_cpu; });
    double cpu = -longest->idle_cpu;
    double seconds = -longest->idle_seconds;
    for (const auto& x : measures) {
      cpu += x.idle_cpu;
      seconds += x.idle_seconds;
    }
    idle_use result{cpu / static_cast<double>(measures.size() - 1), cpu / seconds};
    if (result.mean_seconds < idle_cpu_floor || result.share < idle_cpu_share) return std::nullopt;
    return result;
  }

  judged_run& run_;
  timing_record& record_;
  std::vector<timed_block> blocks_;
  std::vector<timed_block> disturbed_; // both halves of a block are the one pair
  std::vector<call_measure> measures_;
  uint64_t next_call_ = first_timed_call;
};

} // namespace

void judge_timing(judged_run& run, double overhead_seconds) {
  run.parts.pool.settle();
  run.record.timing.overhead_seconds = overhead_seconds;
  if (auto fault = start_baseline(run.parts, run.prepared)) {
    run.record.fault = *fault;
    return;
  }
  raise_priority(run.candidate.process().pid());
  raise_priority(run.prepared.baseline()->process().pid());
  if (run.prepared.arena() != nullptr) return judge_device_timing(run);
  run.work.select(run.prepared.spec().timed);
  timing{run}.measure();
}

} // namespace kernelmill

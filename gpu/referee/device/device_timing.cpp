// A/B timing on a GPU, by a clock that the candidate cannot reach. Calls are made in rows, one set
// of buffers each, and the time of a call is the slope between a row of N and one of 3N: what a row
// costs besides its calls cancels. One more call before the clock starts brings the process's
// context onto the GPU: that takes 0.05 to 0.3 ms, never the same. Contents are fresh for every
// row, each call of it sees its own, and all of them are checked. A call is told of its set only
// when the one before has returned, the order of the sets is secret, and a short row leaves two
// thirds of the sets unasked: who computes ahead writes where nobody asked.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gpu/referee/device/device_rows.hpp"

namespace kernelmill {

namespace {

constexpr double short_row_seconds = 1e-4; // at least, where there are sets enough
constexpr double disturbed_factor = 1.08;
constexpr double disturbed_floor = 5e-6;
constexpr double late_floor = 30e-6; // seconds; the gaps of honest rows agree to 15 us
constexpr double late_share = 0.75;  // of the rows of one kind, before anybody is blamed
constexpr size_t late_rows = 4;
constexpr double busy_factor = 5; // a flush that takes this much longer
constexpr double busy_floor = 500e-6;
constexpr double clocks_share = 0.1; // of the time of a call
constexpr double clocks_floor = 20e-6;
constexpr double roofline_margin = 1.05;
// Matrix units do fp32 work in several passes; no card does more than this over its plain rate.
constexpr double matrix_unit_factor = 4;

/// Rows of one process and one length.
using timed_rows = std::vector<row_times>;

double quartile(const timed_rows& rows, double row_times::*what) {
  std::vector<double> values;
  for (const auto& x : rows) values.push_back(x.*what);
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 4];
}

class device_timing {
public:
  explicit device_timing(judged_run& run)
      : run_(run), record_(run.record.timing), gpu_(run.prepared.arena()->gpu()),
        spec_(run.prepared.spec()), rows_(run) {}

  void measure() {
    record_.clock = "outside, slope of rows";
    if (!agree()) return;
    if (auto fault = run_.choose_geometry(spec_.timed)) {
      run_.record.correct = false;
      run_.record.fault = *fault;
      return;
    }
    run_.candidate.forget();
    baseline().spin(true);
    if (warm_up()) take_blocks();
    baseline().spin(false);
    rows_.note_spans(run_.record.spans);
    if (run_.record.correct && run_.record.fault.cls == fault_class::none) summarize();
  }

private:
  candidate_process& process() { return run_.candidate.process(); }
  candidate_process& baseline() { return run_.prepared.baseline()->process(); }

  // The reference on the GPU is believed after it has agreed with the host's.
  bool agree() {
    if (run_.prepared.truth_agrees) return true;
    auto work = run_.prepared.make_workload();
    run_.prepared.truth_agrees = true;
    auto cause = run_.prepared.truth()->disagreement(work);
    if (!cause) return true;
    run_.prepared.truth_agrees = false;
    run_.record.fault = {fault_class::configuration, "bad_reference",
                         "failed to time task " + spec_.id +
                             ": reference.cu disagrees with reference.cpp: " + *cause,
                         "run `kernelmill task check " + spec_.id + " --backend cuda`"};
    return false;
  }

  // One call of each, checked, which loads kernels; then how many calls make a row.
  bool warm_up() {
    if (!checked_row(baseline(), 1)) return false;
    auto slower = last_.done;
    if (!row(process(), 1)) return false;
    slower = std::max(slower, last_.done);
    if (!audit_candidate()) return false;
    auto wanted = static_cast<unsigned>(short_row_seconds / std::max(slower, 1e-6)) + 1;
    short_ = std::clamp(wanted, 1u, (rows_.sets() - 1) / 3);
    return true;
  }

  void take_blocks() {
    double started = now_seconds();
    for (unsigned round = 1; record_.note.empty(); ++round) {
      if (!half(round % 2 == 1)) return;
      blocks_ = undisturbed_blocks();
      record_.note = stop_reason(blocks_, run_.options.stopping, now_seconds() - started);
      if (record_.note.empty() && run_.expired()) record_.note = "the deadline of the evaluation";
      if (record_.note.empty() && round >= 2 * run_.options.stopping.max_blocks)
        record_.note = "the most blocks, with those that were disturbed";
    }
  }

  bool half(bool reference_first) {
    return long_and_short(reference_first) && long_and_short(!reference_first);
  }

  bool long_and_short(bool reference) {
    return timed_row(reference, true) && timed_row(reference, false);
  }

  bool timed_row(bool reference, bool is_long) {
    if (!row(reference ? baseline() : process(), is_long ? 3 * short_ : short_)) return false;
    (reference ? reference_rows_ : candidate_rows_)[is_long ? 1 : 0].push_back(last_);
    return reference || audit_candidate();
  }

  // Other processes come and go on the GPU while rows are timed: contexts of the candidates to come
  // are made and those of the past are torn down. That only ever adds to a row, by 0.1 ms and more;
  // rows that are plainly longer than the others of their kind are left out. So are those after
  // which the GPU was not idle: their end may have been told too early.
  std::vector<double> undisturbed(const timed_rows& rows, int kind) const {
    std::vector<double> result;
    for (const auto& x : rows)
      if (is_undisturbed(x, rows, kind)) result.push_back(x.done);
    return result;
  }

  bool is_undisturbed(const row_times& x, const timed_rows& all, int kind) const {
    double limit = quartile(all, &row_times::done) * disturbed_factor + disturbed_floor;
    return x.done <= limit && !is_late(x, kind);
  }

  bool is_late(const row_times& x, int kind) const {
    return x.gap > quartile(reference_rows_[kind], &row_times::gap) + late_floor;
  }

  std::vector<timed_block> undisturbed_blocks() const {
    auto reference = slopes(reference_rows_);
    auto candidate = slopes(candidate_rows_);
    std::vector<timed_block> result;
    for (size_t i = 0; i < std::min(reference.size(), candidate.size()); ++i)
      result.push_back({{reference[i], reference[i]}, {candidate[i], candidate[i]}});
    return result;
  }

  // Seconds of one call, once for each pair of a long and a short row.
  std::vector<double> slopes(const timed_rows (&rows)[2]) const {
    auto long_rows = undisturbed(rows[1], 1);
    auto short_rows = undisturbed(rows[0], 0);
    std::vector<double> result;
    for (size_t i = 0; i < std::min(long_rows.size(), short_rows.size()); ++i)
      result.push_back(std::max((long_rows[i] - short_rows[i]) / (2.0 * short_), 1e-9));
    return result;
  }

  bool row(candidate_process& who, unsigned count) {
    auto made = rows_.make(who, count);
    if (!made) return blame(who);
    last_ = *made;
    flushes_.push_back(last_.flush);
    return true;
  }

  bool blame(candidate_process& who) {
    const auto& ending = who.ending();
    if (&who == &baseline()) {
      run_.record.fault = bad_baseline(spec_, "ended: " + (ending ? ending->fault.message : ""));
      return false;
    }
    run_.record.correct = false;
    if (ending) run_.record.fault = ending->fault;
    return false;
  }

  bool checked_row(candidate_process& who, unsigned count) {
    if (!row(who, count)) return false;
    auto found = rows_.audit();
    if (found.bad == 0) return true;
    run_.record.fault = bad_baseline(spec_, "is wrong: " + rows_.describe(found));
    return false;
  }

  bool audit_candidate() {
    auto found = rows_.audit();
    auto reject = [&](const char* rule, const char* category, const std::string& evidence) {
      run_.find(rule, severity::critical, evidence);
      run_.record.correct = false;
      if (run_.record.fault.cls == fault_class::none)
        run_.record.fault = {fault_class::candidate, category, evidence, {}};
    };
    if (found.damaged_guards > 0)
      reject("out_of_bounds_write", "out_of_bounds_write",
             fmt::format("{} bytes beside an output were written", found.damaged_guards));
    if (found.changed_inputs > 0)
      reject("input_overwrite", "input_overwrite",
             fmt::format("{} elements of an input were changed", found.changed_inputs));
    if (found.unasked > 0)
      reject(
          "unasked_work", "unasked_work",
          fmt::format("{} elements of outputs that no call was given were written", found.unasked));
    if (found.late > 0)
      reject("late_write", "late_write",
             fmt::format("{} of the samples taken when the calls were done changed later",
                         found.late));
    if (found.bad > 0)
      reject("wrong_when_timed", "wrong_result",
             fmt::format("right in all cases, but wrong at the timed shape in {} elements: {}",
                         found.bad, rows_.describe(found)));
    return run_.record.correct;
  }

  void summarize() {
    std::vector<double> reference;
    std::vector<double> candidate;
    for (const auto& block : blocks_) {
      reference.push_back(block.reference[0]);
      candidate.push_back(block.candidate[0]);
    }
    look_for_lateness();
    if (blocks_.empty()) return;
    record_.measured = true;
    record_.reference_seconds = median(reference);
    record_.candidate_seconds = median(candidate);
    record_.speedup = estimate_speedup(blocks_);
    record_.samples = static_cast<uint32_t>(blocks_.size() * 4 * short_);
    size_t left_out = 4 * (candidate_rows_[0].size() - blocks_.size());
    if (left_out > 0) record_.note += fmt::format("; {} rows were disturbed", left_out);
    look_for_background_work();
    compare_with_roofline();
    note_conditions(gpu_, run_.record);
    if (run_.program != nullptr) compare_clocks();
  }

  // Nobody but us can reach either clock. Should they disagree, the machine or the measurement has
  // a fault that somebody should look at.
  void compare_clocks() {
    std::vector<double> by_events[2];
    for (int kind = 0; kind < 2; ++kind)
      for (const auto& x : candidate_rows_[kind])
        if (is_undisturbed(x, candidate_rows_[kind], kind)) by_events[kind].push_back(x.by_events);
    double events = (median(by_events[1]) - median(by_events[0])) / (2.0 * short_);
    double off = std::fabs(events - record_.candidate_seconds);
    run_.record.conditions.push_back({"time_by_events", events * 1e3, "ms"});
    if (off * 2 * short_ < clocks_floor || off < clocks_share * record_.candidate_seconds) return;
    run_.find("clocks_disagree", severity::warning,
              fmt::format("{:.6f} ms a call by the outside clock, {:.6f} ms by CUDA events",
                          record_.candidate_seconds * 1e3, events * 1e3));
  }

  // A process that says "done" too early is found out by the referee's own work, which then waits
  // for what is still running. Single rows of that kind have other causes and are left out.
  void look_for_lateness() {
    for (int kind = 0; kind < 2; ++kind) {
      const auto& rows = candidate_rows_[kind];
      auto late = static_cast<size_t>(std::count_if(
          rows.begin(), rows.end(), [&](const row_times& x) { return is_late(x, kind); }));
      if (rows.size() < late_rows || static_cast<double>(late) < late_share * rows.size()) continue;
      run_.find("early_return", severity::critical,
                fmt::format("the GPU was busy for {:.3f} ms after the process said that it was "
                            "done, in {} of {} rows",
                            (quartile(rows, &row_times::gap) -
                             quartile(reference_rows_[kind], &row_times::gap)) *
                                1e3,
                            late, rows.size()));
    }
  }

  // The referee's own work between rows takes longer when the candidate's context is busy.
  void look_for_background_work() {
    double usual = gpu_.usual_flush_seconds();
    double now = median(flushes_);
    if (now < std::max(busy_floor, busy_factor * usual)) return;
    run_.find("background_work", severity::critical,
              fmt::format("a flush of the cache between calls took {:.3f} ms instead of {:.3f} ms: "
                          "somebody else used the GPU",
                          now * 1e3, usual * 1e3));
  }

  void compare_with_roofline() {
    double bytes = static_cast<double>(spec_.bytes.evaluate(spec_.timed.scalars).value_or(0));
    double flops = static_cast<double>(spec_.flops.evaluate(spec_.timed.scalars).value_or(0));
    // The last writes of a row may still be in the cache when it ends.
    double calls = 2.0 * short_;
    double moved = std::max(0.0, bytes - static_cast<double>(gpu_.cache_bytes()) / calls);
    record_.roofline_seconds = std::max(moved / gpu_.memory_bytes_per_second(),
                                        flops / (gpu_.flops_per_second() * matrix_unit_factor)) /
                               roofline_margin;
    if (record_.candidate_seconds >= record_.roofline_seconds) return;
    run_.find(
        "impossible_speed", severity::critical,
        fmt::format("{:.6f} ms for {:.0f} bytes and {:.0f} flops; this GPU needs {:.6f} ms at "
                    "least",
                    record_.candidate_seconds * 1e3, bytes, flops, record_.roofline_seconds * 1e3));
  }

  judged_run& run_;
  timing_record& record_;
  device& gpu_;
  const task& spec_;
  device_rows rows_;
  unsigned short_ = 1; // calls of a short row against the clock
  row_times last_;
  timed_rows reference_rows_[2]; // short, long
  timed_rows candidate_rows_[2];
  std::vector<timed_block> blocks_;
  std::vector<double> flushes_;
};

} // namespace

void note_conditions(const device& gpu, evaluation_record& record) {
  auto now = gpu.state();
  if (!now) return;
  auto& into = record.conditions;
  into.push_back({"sm_clock", static_cast<double>(now->clock_mhz), "MHz"});
  into.push_back({"memory_clock", static_cast<double>(now->memory_clock_mhz), "MHz"});
  into.push_back({"temperature", static_cast<double>(now->celsius), "C"});
  into.push_back({"power", now->milliwatts * 1e-3, "W"});
  into.push_back({"throttle_reasons", static_cast<double>(now->throttle_reasons), "NVML bits"});
  if (now->slowed()) record.timing.note += "; the GPU was slowed down by heat or power";
}

void judge_device_timing(judged_run& run) {
  device_timing{run}.measure();
}

} // namespace kernelmill

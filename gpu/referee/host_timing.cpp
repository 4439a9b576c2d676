// The timing of libraries on a CPU, and what its calls tell about the candidate.

#include <algorithm>

#include <fmt/format.h>

#include "gpu/process/standstill.hpp"
#include "gpu/referee/batch_record.hpp"
#include "gpu/referee/host_batches.hpp"
#include "gpu/timing/thresholds.hpp"

namespace kernelmill {

namespace {

// A CPU's pace changes by a third beside a candidate that does nothing, so the baseline's time has
// no cap: what slows it for a moment shows by the order of calls.
timing::calibration nothing_before() {
  timing::calibration result;
  result.fills = {0};
  result.noise = timing::host_noise;
  return result;
}

// A baseline that is called after the candidate must not be slower than one that is called before
// it, by more than the candidate is when it is called second itself: what the candidate leaves
// behind, heat or a lower clock, then slows the baseline.
void look_for_a_slowed_baseline(measured_run& run, const std::vector<timed_block>& blocks) {
  auto slowed = slowed_by_order(blocks);
  if (!slowed) return;
  auto& timing = run.record.timing;
  for (double* x : {&timing.speedup.low, &timing.speedup.estimate, &timing.speedup.high})
    *x /= *slowed;
  timing.reference_seconds /= *slowed;
  run.find("slows_baseline", severity::warning,
           fmt::format("the baseline is slower by {:.1f} % after a call of the candidate than "
                       "before it: that is not rewarded",
                       (*slowed * *slowed - 1) * 100));
}

// Compares with what this machine can do at most.
void compare_with_roofline(measured_run& run) {
  const auto& x = run.prepared.spec();
  auto& record = run.record.timing;
  double bytes = static_cast<double>(x.bytes.evaluate(x.timed.scalars).value_or(0));
  double flops = static_cast<double>(x.flops.evaluate(x.timed.scalars).value_or(0));
  auto& hardware = run.parts.hardware;
  auto floor = [&] { return hardware.roofline_seconds(bytes, flops, working_set(x, x.timed)); };
  record.roofline_seconds = floor();
  if (record.candidate_seconds >= record.roofline_seconds) return;
  // The peaks may have been measured while others used the machine.
  hardware.measure_again();
  record.roofline_seconds = floor();
  if (record.candidate_seconds >= record.roofline_seconds) return;
  run.find("impossible_speed", severity::critical,
           fmt::format(
               "{:.6f} ms for {:.0f} bytes and {:.0f} flops; this machine needs {:.6f} ms at least",
               record.candidate_seconds * 1e3, bytes, flops, record.roofline_seconds * 1e3));
}

// No other process has let it go on.
void look_for_work_while_stopped(measured_run& run, const seen_in_calls& seen) {
  if (seen.worked_on > 0)
    run.find("ran_while_stopped", severity::critical,
             fmt::format("it worked on for {:.0f} ms and more after it was told to stop, in {} "
                         "of {} calls",
                         standstill::patience * 500, seen.worked_on, seen.candidate.size()));
  std::vector<double> worked;
  std::vector<double> called;
  for (const auto& x : seen.candidate) {
    worked.push_back(x.idle_cpu);
    called.push_back(x.seconds);
  }
  double share = trimmed_mean(worked) / trimmed_mean(called);
  if (share <= timing::most_idle_share) return;
  run.find("ran_while_stopped", severity::critical,
           fmt::format("{:.3f} ms of CPU time before a call, while it was stopped: {:.1f} % of a "
                       "call's",
                       trimmed_mean(worked) * 1e3, share * 100));
}

// How far behind the candidate is, disturbed or not; the referee counts calls, not batches.
void note_baseline(const seen_in_calls& seen, const baseline_record& counted,
                   baseline_record& into) {
  std::vector<double> candidate;
  for (const auto& x : seen.candidate) candidate.push_back(x.seconds);
  into.calls = counted.calls;
  into.disturbed = counted.disturbed;
  into.behind = median(std::move(candidate)) / median(seen.baseline);
  if (!seen.blocks.empty()) into.half_width = baseline_half_width(seen.blocks);
}

void write(measured_run& run, const timing::controller& control, const timing::calibration& before,
           const host_batches& batches) {
  auto& timing = run.record.timing;
  std::vector<std::string> names;
  for (const auto& x : run.prepared.patterns) names.push_back(x.which.name);
  auto counted = timing.baseline;
  write_batches(control, before, names, run.record);
  note_baseline(batches.seen(), counted, timing.baseline);
  timing.overhead_seconds = batches.empty_call();
  if (!timing.measured) return;
  look_for_a_slowed_baseline(run, batches.seen().blocks);
  timing.by_call = {timing.candidate_seconds, timing.reference_seconds};
  compare_with_roofline(run);
}

} // namespace

void measure_host(measured_run& run, double alone) {
  auto& timing = run.record.timing;
  if (auto fault = choose_patterns(run)) {
    run.record.fault = *fault;
    return;
  }
  host_batches batches{run, alone};
  if (!batches.warm_up()) return;
  timing::timing_wish wish;
  wish.patterns = run.prepared.patterns.size();
  wish.half_width = run.options.half_width;
  wish.one_by_one = true;
  wish.nominal = timing::host_nominal;
  wish.rounds = timing::host_rounds;
  wish.most_more = timing::most_more_host_seconds;
  wish.draw = [&run] { return run.next_order(); };
  auto before = nothing_before();
  timing::controller control{batches, wish, before};
  auto end = control.run();
  if (end == timing::timing_end::over) {
    // A candidate that ends the timing where it finds itself slow has no second try.
    if (auto paid = control.result(); paid && paid->paid.pairs > 1)
      timing.until_ended = paid->paid.speedup;
    return;
  }
  if (end == timing::timing_end::decided) write(run, control, before, batches);
  if (end == timing::timing_end::short_of_time) {
    auto counted = timing.baseline;
    write_too_few(control, timing);
    note_baseline(batches.seen(), counted, timing.baseline);
  }
  look_for_work_while_stopped(run, batches.seen());
}

} // namespace kernelmill

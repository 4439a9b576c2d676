#include "gpu/referee/timing_findings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gpu/referee/disturbance.hpp"

namespace kernelmill {

namespace {

constexpr double idle_share = 0.01; // of the calls; who is stopped takes no time at all
constexpr double told_late_share = 0.02;

} // namespace

// What a process does from when it was seen to be done until it stands still, it did not do in
// its calls. Some of it is the price of being stopped: a baseline shows it, for a thread.
double late_work(measured_run& run, const seen_in_calls& seen) {
  std::vector<double> late;
  std::vector<double> called;
  std::vector<double> threads;
  for (const auto& x : seen.measures) {
    called.push_back(x.seconds);
    late.push_back(x.late_cpu);
    threads.push_back(static_cast<double>(x.threads.size()));
  }
  double count = std::min<double>(median(std::move(threads)), run.parts.hardware.cores());
  double beside = trimmed_mean(seen.reference_late);
  double elsewhere = std::max(beside, seen.stopping_price);
  double price = (seen.candidate_apart ? elsewhere : beside) + (count - 1) * elsewhere;
  double excess = std::max(0.0, trimmed_mean(late) - price);
  if (excess > told_late_share * trimmed_mean(called))
    run.record.timing.note +=
        fmt::format("; {:.4f} ms of a call were worked after it was said to be done", excess * 1e3);
  return excess;
}

void look_for_a_slowed_baseline(measured_run& run, const std::vector<timed_block>& blocks) {
  auto slowed = slowed_by_order(blocks);
  if (!slowed) return;
  auto& speedup = run.record.timing.speedup;
  for (double* x : {&speedup.low, &speedup.estimate, &speedup.high}) *x /= *slowed;
  run.find("slows_baseline", severity::warning,
           fmt::format("the baseline is slower by {:.1f} % after a call of the candidate than "
                       "before it: that is not paid",
                       (*slowed * *slowed - 1) * 100));
}

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

// Nobody has let it go on but itself.
void look_for_work_while_stopped(measured_run& run, const seen_in_calls& seen) {
  if (seen.worked_on > 0)
    run.find("ran_while_stopped", severity::critical,
             fmt::format("it worked on for {:.0f} ms and more after it was told to stop, in {} "
                         "of {} calls",
                         standstill::patience * 500, seen.worked_on, seen.measures.size()));
  std::vector<double> worked;
  std::vector<double> called;
  for (const auto& x : seen.measures) {
    worked.push_back(x.idle_cpu);
    called.push_back(x.seconds);
  }
  double share = trimmed_mean(worked) / trimmed_mean(called);
  if (share <= idle_share) return;
  run.find("ran_while_stopped", severity::critical,
           fmt::format("{:.3f} ms of CPU time before a call, while it was stopped: {:.1f} % of a "
                       "call's",
                       trimmed_mean(worked) * 1e3, share * 100));
}

} // namespace kernelmill

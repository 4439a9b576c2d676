#include "gpu/referee/device/row_findings.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

namespace {

constexpr double late_floor = 30e-6; // seconds; the gaps of honest rows agree to 15 us
constexpr double late_share = 0.75;  // of the rows, before anybody is blamed
constexpr size_t late_rows = 4;
constexpr double busy_floor = 500e-6; // seconds that contents come later
constexpr double busy_share = 0.3;
constexpr double stopped_seconds = 20e-6; // to stop may take a moment longer than it is waited for
constexpr double clocks_share = 0.1;      // of the time of a call
constexpr double clocks_floor = 20e-6;    // of a row
constexpr double roofline_margin = 1.05;
// Matrix units do fp32 work in several passes; no card does more than this over its plain rate.
constexpr double matrix_unit_factor = 4;

double lower_quartile_of_gaps(const std::vector<row_times>& rows) {
  std::vector<double> gaps;
  for (const auto& x : rows) gaps.push_back(x.gap);
  std::sort(gaps.begin(), gaps.end());
  return gaps.empty() ? 0 : gaps[gaps.size() / 4];
}

} // namespace

bool note_audit(measured_run& run, const std::function<std::string()>& describe,
                const device_audit& found, bool gated) {
  auto reject = [&](const char* rule, const char* category, const std::string& evidence) {
    run.find(rule, severity::critical, evidence);
    run.record.correct = false;
    if (run.record.fault.cls == fault_class::none)
      run.record.fault = {fault_class::candidate, category, evidence, {}};
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
  if (gated) return run.record.correct;
  if (found.late > 0)
    reject(
        "late_write", "late_write",
        fmt::format("{} of the samples taken when the calls were done changed later", found.late));
  if (found.bad > 0)
    reject("wrong_when_timed", "wrong_result",
           fmt::format("right in all cases, but wrong at the timed shape in {} elements: {}",
                       found.bad, describe()));
  return run.record.correct;
}

void look_for_lateness(measured_run& run, const std::vector<row_times>& candidate,
                       const std::vector<row_times>& reference) {
  double usual = lower_quartile_of_gaps(reference);
  auto late = static_cast<size_t>(
      std::count_if(candidate.begin(), candidate.end(),
                    [&](const row_times& x) { return x.gap > usual + late_floor; }));
  if (candidate.size() < late_rows ||
      static_cast<double>(late) < late_share * static_cast<double>(candidate.size()))
    return;
  run.find("early_return", severity::critical,
           fmt::format("the GPU was busy for {:.3f} ms after the process said that it was done, "
                       "in {} of {} rows",
                       (lower_quartile_of_gaps(candidate) - usual) * 1e3, late, candidate.size()));
}

void look_for_background_work(measured_run& run, const std::vector<double>& longer, double usual) {
  if (longer.size() < late_rows) return;
  double by = median(longer);
  if (by < std::max(busy_floor, busy_share * usual)) return;
  run.find("background_work", severity::critical,
           fmt::format("to put contents there took {:.3f} ms instead of {:.3f} ms: somebody else "
                       "used the GPU",
                       (usual + by) * 1e3, usual * 1e3));
}

void look_for_work_while_stopped(measured_run& run, const std::vector<double>& worked) {
  double usual = trimmed_mean(worked);
  if (usual <= stopped_seconds) return;
  run.find("ran_while_stopped", severity::critical,
           fmt::format("{:.3f} ms of CPU time between two of its rows, while it was stopped",
                       usual * 1e3));
}

void compare_with_roofline(measured_run& run, double calls) {
  const auto& spec = run.prepared.spec();
  const auto& gpu = run.prepared.arena()->gpu();
  auto& record = run.record.timing;
  // For the profile, which compares with them on the node.
  run.record.counters.push_back({"machine_memory_bandwidth", gpu.memory_bytes_per_second(), "B/s"});
  run.record.counters.push_back({"machine_flops", gpu.flops_per_second(), "flop/s"});
  run.record.counters.push_back(
      {"machine_multiprocessors", static_cast<double>(gpu.multiprocessors()), ""});
  double bytes = static_cast<double>(spec.bytes.evaluate(spec.timed.scalars).value_or(0));
  double flops = static_cast<double>(spec.flops.evaluate(spec.timed.scalars).value_or(0));
  // The last writes of a row may still be in the cache when it ends.
  double moved =
      std::max(0.0, bytes - static_cast<double>(gpu.cache_bytes()) / std::max(calls, 1.0));
  record.roofline_seconds = std::max(moved / gpu.memory_bytes_per_second(),
                                     flops / (gpu.flops_per_second() * matrix_unit_factor)) /
                            roofline_margin;
  if (record.candidate_seconds >= record.roofline_seconds) return;
  run.find("impossible_speed", severity::critical,
           fmt::format("{:.6f} ms for {:.0f} bytes and {:.0f} flops; this GPU needs {:.6f} ms at "
                       "least",
                       record.candidate_seconds * 1e3, bytes, flops,
                       record.roofline_seconds * 1e3));
}

void compare_clocks(measured_run& run, const std::vector<row_times>& gated, double call_seconds) {
  std::vector<double> by_events;
  std::vector<double> calls;
  for (const auto& x : gated) {
    by_events.push_back(x.by_events / std::max(x.calls, 1u));
    calls.push_back(x.calls);
  }
  if (by_events.empty()) return;
  double events = median(by_events);
  double off = std::fabs(events - call_seconds);
  run.record.conditions.push_back({"time_by_events", events * 1e3, "ms"});
  if (off * median(calls) < clocks_floor || off < clocks_share * call_seconds) return;
  run.find("clocks_disagree", severity::warning,
           fmt::format("{:.6f} ms a call by the outside clock, {:.6f} ms by CUDA events",
                       call_seconds * 1e3, events * 1e3));
}

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

void note_apart(evaluation_record& record, const calls_apart& x, double paid) {
  if (x.seconds > 0) {
    record.conditions.push_back({"time_apart", x.seconds * 1e3, "ms"});
    record.conditions.push_back({"cost_apart", x.cost * 1e3, "ms"});
  }
  if (x.beside <= 0) return;
  record.findings.push_back(
      {"calls_overlap", severity::warning,
       fmt::format("{:.6f} ms a call while calls run side by side; {:.6f} ms where each begins "
                   "when the one before is over, which is paid",
                   (paid - x.beside) * 1e3, paid * 1e3)});
}

} // namespace kernelmill

#include "gpu/referee/device/row_findings.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kernelmill {

namespace {

constexpr double roofline_margin = 1.05;
// Matrix units do fp32 work in several passes; no card does more than this over its plain rate.
constexpr double matrix_unit_factor = 4;

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

} // namespace kernelmill

// Where candidates are timed: on a GPU or on a CPU, beside the task's baseline.

#include "gpu/referee/device/batch_timing.hpp"
#include "gpu/referee/scheduling.hpp"

namespace kernelmill {

error bad_baseline(const task& x, const std::string& cause) {
  return {fault_class::configuration, "bad_baseline",
          "failed to time task " + x.id + ": its baseline " + cause,
          "run `kernelmill task check " + x.id +
              (x.terms.backend == "cpu" ? "`" : " --backend " + x.terms.backend + "`")};
}

error bad_baseline(const task& x, const std::string& what, const error& why) {
  auto result = bad_baseline(x, what + ": " + why.message);
  if (why.cls != fault_class::infrastructure) return result;
  return {why.cls, why.category, result.message, why.hint};
}

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
  measure_host(run, run.parts.hardware.least_overhead(overhead_seconds));
}

} // namespace kernelmill

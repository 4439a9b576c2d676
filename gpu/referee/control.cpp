// The control: trusted code in the slot in which something went wrong with a candidate.

#include <algorithm>

#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t control_call = 999; // contents of no case and of no timed call

const task_case* smallest_case(const task& x) {
  auto smaller = [&](const task_case& a, const task_case& b) {
    return working_set(x, a) < working_set(x, b);
  };
  auto found = std::min_element(x.cases.begin(), x.cases.end(), smaller);
  return found != x.cases.end() ? &*found : &x.timed;
}

bool is_right(slot& baseline, workload& work, const call_contents& on,
              const secret_seed& seed = {}) {
  work.select(on.which);
  work.fill(seed, on.call);
  work.find_truth();
  baseline.forget();
  baseline.deliver(work, false);
  auto done = baseline.call(work, call_deadline_ms, 0);
  baseline.forget();
  return done && work.check(baseline.outputs(), on.share).pass();
}

} // namespace

bool control_works(referee_parts parts, prepared_task& prepared, bool timed) {
  if (!prepared.await_gone() || prepared.start_baseline(parts.pool)) return false;
  auto& baseline = *prepared.baseline();
  auto work = prepared.make_workload();
  if (!is_right(baseline, work, {*smallest_case(prepared.spec()), control_call})) return false;
  // On a GPU that shape was looked at before the candidate came.
  return !timed || parts.gpu != nullptr ||
         is_right(baseline, work, {prepared.spec().timed, control_call});
}

void settle_blame(referee_parts parts, prepared_task& prepared, evaluation_record& record,
                  const memory_kills& before) {
  if (!wants_control(record.fault) || is_of_outsiders(record.fault, before)) return;
  // A task's own fault, such as a baseline that is wrong at the timed shape, shows again: on the
  // very contents where it was seen, for it may be wrong on few.
  bool timed = record.fault.cls == fault_class::configuration;
  bool works = control_works(parts, prepared, timed);
  if (works && record.wrong_baseline) {
    auto work = prepared.make_workload();
    works = is_right(*prepared.baseline(), work, *record.wrong_baseline, record.seed);
  }
  record.fault = blamed(record.fault, works);
  if (record.fault.category != disturbance) return;
  record.correct = false;
  record.timing.measured = false;
}

} // namespace kernelmill

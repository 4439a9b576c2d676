#include "gpu/referee/evaluation.hpp"

#include <cstring>

#include <fmt/format.h>

#include "gpu/process/core_use.hpp"
#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/device/batch_timing.hpp"
#include "gpu/referee/device/device.hpp"
#include "gpu/referee/device/slots.hpp"
#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

namespace {

constexpr timespec late_write_pause{0, 1'000'000};
constexpr int most_late_looks = 50;
constexpr double late_seconds = 0.5;        // in which they are made, also by who gets no core
constexpr double background_seconds = 0.05; // looked at who works on
constexpr double background_share = 0.02;   // of a core; who has nothing to do takes none at all

void blame(evaluation_record& record, const error& fault) {
  record.correct = false;
  if (record.fault.cls == fault_class::none) record.fault = fault;
}

void blame_ending(measured_run& run) {
  const auto& ending = run.candidate.process().ending();
  if (!ending) return;
  blame(run.record, ending->fault);
  if (ending->wrote_input) run.find("input_overwrite", severity::critical, ending->fault.message);
}

// A case that ended in a crash stands in the list too.
void note_ended_case(measured_run& run, const task_case& which) {
  case_record lost;
  lost.which = &which;
  lost.distribution = run.work.distribution_text();
  lost.result.first_bad = run.record.fault.message;
  run.record.cases.push_back(std::move(lost));
}

std::vector<const task_case*> in_order(const task& x) {
  std::vector<const task_case*> cases;
  for (const auto& c : x.cases) cases.push_back(&c);
  std::stable_sort(cases.begin(), cases.end(), [&](const task_case* a, const task_case* b) {
    if (a->hidden != b->hidden) return b->hidden;
    return working_set(x, *a) < working_set(x, *b);
  });
  return cases;
}

bool same_bytes(const std::vector<taken_output>& a, const std::vector<taken_output>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const auto& x = a[i];
    const auto& y = b[i];
    if (x.f32.size() != y.f32.size() || x.i32.size() != y.i32.size()) return false;
    if (!x.f32.empty() && std::memcmp(x.f32.data(), y.f32.data(), x.f32.size() * 4) != 0)
      return false;
    if (!x.i32.empty() && std::memcmp(x.i32.data(), y.i32.data(), x.i32.size() * 4) != 0)
      return false;
  }
  return true;
}

// The latest contents again, as often as is asked for. Sums in no fixed order, as atomics and
// look-back scans have them, give other bits within the bound. Who is right once and wrong once on
// the same inputs is not deterministic. False: a call has ended the candidate.
bool repeat_case(measured_run& run, const task_case& which) {
  auto first = run.candidate.outputs();
  bool varies = false;
  for (unsigned done = 1; done < run.parts.determinism_runs; ++done) {
    call_measure unused;
    if (!run.call_candidate(false, unused)) {
      note_ended_case(run, which);
      return false;
    }
    if (same_bytes(first, run.candidate.outputs())) continue;
    varies = true;
    if (run.work.check(run.candidate.outputs()).pass()) continue;
    run.record.deterministic = false;
    run.find("not_deterministic", severity::warning,
             "case " + which.name + ": the same inputs gave different results");
    return true;
  }
  if (varies)
    run.find("bits_vary", severity::warning,
             "case " + which.name + ": the same inputs gave other bits, within the bound");
  return true;
}

// Twice with different contents, so that a remembered result is seen; then with the second contents
// again.
bool passes_case(measured_run& run, const task_case& which) {
  run.work.select(which);
  if (auto fault = run.choose_geometry(which)) {
    blame(run.record, *fault);
    note_ended_case(run, which);
    return false;
  }
  case_record found;
  found.which = &which;
  found.distribution = run.work.distribution_text();
  for (uint64_t call = 0; call < 2; ++call) {
    run.work.fill(run.record.seed, call);
    run.work.find_truth();
    call_measure unused;
    if (!run.call_candidate(false, unused)) {
      note_ended_case(run, which);
      return false;
    }
    auto result = run.work.check(run.candidate.outputs());
    found.result = call == 0 ? result : worse_of(found.result, result);
    if (!found.result.pass()) break;
  }
  found.pass = found.result.pass();
  if (found.pass && !repeat_case(run, which)) return false;
  run.record.cases.push_back(std::move(found));
  return run.record.cases.back().pass;
}

error wrong_result(const task& x, const case_record& failed) {
  const auto& c = *failed.which;
  auto count =
      fmt::format("{} element{} wrong", failed.result.bad, failed.result.bad == 1 ? "" : "s");
  // A hidden case stays hidden in what the policy may read.
  if (c.hidden)
    return {fault_class::candidate, "wrong_result",
            "a hidden case is wrong: another shape or other inputs, " + count,
            "handle every shape and every range of values that the task allows"};
  return {fault_class::candidate,
          "wrong_result",
          fmt::format("case {} ({}) is wrong: {}; {}", c.name, shape_text(x, c.scalars),
                      failed.result.first_bad, count),
          {}};
}

} // namespace

// -- one run ----------------------------------------------------------------------------------

bool measured_run::call_candidate(bool cold, call_measure& measure) {
  if (auto changed = candidate.deliver(work, cold))
    find("late_write", severity::critical, *changed);
  auto done = candidate.call(work, call_limit(), next_order());
  if (!done) {
    blame_ending(*this);
    return false;
  }
  measure = *done;
  auto damage = candidate.damage();
  if (!damage) return true;
  find("out_of_bounds_write", severity::critical, *damage);
  blame(record, {fault_class::candidate, "out_of_bounds_write",
                 "the candidate wrote outside an output: " + *damage,
                 "check every index against the shape"});
  return false;
}

std::optional<error> measured_run::choose_geometry(const task_case& which) {
  return program != nullptr ? program->select(which.scalars) : std::nullopt;
}

void measured_run::seal() {
  if (record.sealed) return;
  record.output = candidate.process().output();
  record.sealed = true;
}

void measured_run::look_for_late_writes() {
  // As long as a thread has something left to do, up to a limit; an honest process sleeps.
  auto& process = candidate.process();
  process.go_on();
  double until = now_seconds() + late_seconds;
  for (int look = 0; look < most_late_looks && now_seconds() < until; ++look) {
    ::nanosleep(&late_write_pause, nullptr);
    if (auto changed = candidate.changed_since())
      return find("late_write", severity::critical, *changed);
    if (!wants_core(process.pid())) return;
  }
}

void measured_run::look_for_background_work() {
  auto& process = candidate.process();
  double started = now_seconds();
  double before = process.cpu_seconds();
  do ::nanosleep(&late_write_pause, nullptr);
  while (wants_core(process.pid()) && now_seconds() - started < background_seconds);
  double seconds = now_seconds() - started;
  double worked = process.cpu_seconds() - before;
  if (worked <= background_share * seconds) return;
  find("background_work", severity::critical,
       fmt::format("{:.3f} ms of CPU time in {:.3f} ms after the last call, {:.0f} % of one core",
                   worked * 1e3, seconds * 1e3, worked / seconds * 100));
}

bool check_cases(measured_run& run) {
  bool wrong = false;
  for (const auto* which : in_order(run.work.spec())) {
    if (which->hidden && run.options.visible_only) break; // they come behind the visible ones
    if (which->hidden && wrong) return false; // all visible ones are told, hidden ones only count
    if (run.expired()) {
      blame(run.record, {fault_class::candidate,
                         "timed_out",
                         "the candidate used up the time of its evaluation",
                         {}});
      return false;
    }
    if (which->hidden) run.seal();
    if (passes_case(run, *which)) continue;
    const auto& category = run.record.fault.category;
    if (run.candidate.process().ending() || category == "out_of_bounds_write" ||
        category == "bad_launch")
      return false;
    wrong = true;
    blame(run.record, wrong_result(run.work.spec(), run.record.cases.back()));
    if (which->hidden) return false;
  }
  run.record.correct = run.record.found_right = !wrong;
  return !wrong;
}

namespace {

// Whoever asks for a profile has the verdict. What is looked for after a judgement is left out,
// too: a profile decides nothing.
void run_profile(measured_run& run, span_clock& clock) {
  run.seal();
  candidate_pool::hold until_it_is_over{run.parts.pool};
  count_calls(run);
  clock.lap("profile");
}

void run_phases(measured_run& run, double overhead, span_clock& clock) {
  if (run.options.profiled) return run_profile(run, clock);
  bool right = check_cases(run);
  clock.lap("correctness");
  if (right && !run.options.visible_only) run.seal();
  candidate_pool::hold until_it_is_over{run.parts.pool};
  if (right && run.options.timed) {
    measure_timing(run, overhead);
    clock.lap("timing");
  }
  // Device code has nobody who could write later.
  if (run.program != nullptr || run.candidate.process().ending()) return;
  run.look_for_late_writes();
  // On a GPU a driver's threads work, too.
  if (right && run.options.timed && run.parts.gpu == nullptr) run.look_for_background_work();
}

// Once the candidate's code is in.
void measure_loaded(measured_run run, double overhead, span_clock& clock) {
  std::memcpy(&run.order, run.record.seed.data(), sizeof run.order);
  // A GPU slot has cores to spare, and being woken up takes longer than a call.
  if (run.parts.gpu != nullptr) run.candidate.process().spin(true);
  try {
    run_phases(run, overhead, clock);
  } catch (const device_failure& e) {
    // Our own call to the GPU. A candidate may have provoked that, by taking all of its memory.
    run.record.fault = {fault_class::infrastructure, "cuda_failed", e.what(),
                        "`kernelmill doctor` shows the GPUs"};
  }
  run.candidate.process().spin(false);
}

void keep_output(evaluation_record& record, const candidate_process& process) {
  if (!record.sealed) record.output = process.output();
}

// Before a candidate is loaded that could change what is seen, or on which pages the baseline's
// buffers lie.
std::optional<error> look_at_baseline(referee_parts parts, prepared_task& prepared,
                                      const evaluation_options& options) {
  if (!options.timed || options.profiled) return std::nullopt;
  if (parts.gpu == nullptr) return prepared.start_baseline(parts.pool);
  return calibrate_baseline(prepared, parts.pool, parts.hardware.timed_cpus(), options.clock);
}

} // namespace

evaluation_record evaluate_library(referee_parts parts, prepared_task& prepared, int library,
                                   const evaluation_options& options) {
  evaluation_record record;
  record.case_count = static_cast<uint32_t>(prepared.spec().cases.size());
  auto kills = memory_kills::now();
  span_clock clock{record};
  if (auto ok = prepared.begin(); !ok) {
    record.fault = ok.error();
    return record;
  }
  clock.lap("buffers");
  auto process = parts.pool.take();
  clock.lap("process");
  auto candidate = process ? prepared.make_slot(std::move(*process), library)
                           : tl::unexpected<error>{process.error()};
  if (!candidate) {
    record.fault = candidate.error();
    return record;
  }
  auto& judged = **candidate;
  auto work = prepared.make_workload();
  bool is_clock = parts.gpu == nullptr && options.timed && !options.profiled;
  if (is_clock) {
    work.select(prepared.spec().timed);
    work.fill({}, 0);
  }
  auto overhead = judged.measure_overhead(is_clock ? &work : nullptr);
  if (auto fault = look_at_baseline(parts, prepared, options)) {
    record.fault = *fault;
    prepared.release(parts.pool.retire(std::move(*candidate)));
    return record;
  }
  if (parts.gpu != nullptr) clock.lap("quiet");
  auto fault = overhead ? judged.load(call_deadline_ms)
                        : std::optional<error>{judged.process().ending()->fault};
  clock.lap("load");
  // Only now, so that nothing that was loaded can have been made for these inputs.
  record.seed = options.seeded ? options.seed : draw_seed();
  if (fault)
    record.fault = *fault;
  else
    measure_loaded({parts, prepared, options, judged, std::move(work), record}, *overhead, clock);
  keep_output(record, judged.process());
  prepared.release(parts.pool.retire(std::move(*candidate)));
  clock.lap("release");
  if (overhead) settle_blame(parts, prepared, record, kills);
  return record;
}

evaluation_record evaluate_program(referee_parts parts, prepared_task& prepared,
                                   const std::string& artifact, const evaluation_options& options) {
  evaluation_record record;
  record.case_count = static_cast<uint32_t>(prepared.spec().cases.size());
  auto kills = memory_kills::now();
  span_clock clock{record};
  if (auto ok = prepared.begin(true); !ok) {
    record.fault = ok.error();
    return record;
  }
  clock.lap("buffers");
  auto runner = prepared.runner(parts.pool);
  if (!runner) {
    record.fault = runner.error();
    return record;
  }
  clock.lap("process");
  auto& judged = **runner;
  if (auto fault = look_at_baseline(parts, prepared, options)) {
    record.fault = *fault;
    return record;
  }
  if (parts.gpu != nullptr) clock.lap("quiet");
  auto fault = judged.load_program(artifact, call_deadline_ms);
  if (!fault && judged.process().ending()) fault = judged.process().ending()->fault;
  clock.lap("load");
  record.seed = options.seeded ? options.seed : draw_seed();
  if (fault)
    record.fault = *fault;
  else
    measure_loaded({parts, prepared, options, judged, prepared.make_workload(), record, &judged}, 0,
                   clock);
  keep_output(record, judged.process());
  if (judged.process().ending() || judged.leaves_traces() || wants_control(record.fault))
    prepared.drop_runner(parts.pool);
  clock.lap("release");
  settle_blame(parts, prepared, record, kills);
  return record;
}

} // namespace kernelmill

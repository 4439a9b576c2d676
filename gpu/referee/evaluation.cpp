#include "gpu/referee/evaluation.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "gpu/process/descriptor.hpp"
#include "gpu/referee/device/device.hpp"
#include "gpu/referee/judge_run.hpp"
#include "gpu/referee/scheduling.hpp"
#include "messages/digest.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

constexpr uint32_t default_deadline_ms = 30'000;
constexpr off_t max_library_bytes = off_t{64} << 20;
constexpr timespec late_write_pause{0, 1'000'000};
constexpr int most_late_looks = 50;

void blame(evaluation_record& record, const error& fault) {
  record.correct = false;
  if (record.fault.cls == fault_class::none) record.fault = fault;
}

void blame_ending(judged_run& run) {
  const auto& ending = run.candidate.process().ending();
  if (!ending) return;
  blame(run.record, ending->fault);
  if (ending->wrote_input) run.find("input_overwrite", severity::critical, ending->fault.message);
}

// A case that ended in a crash stands in the list too.
void note_ended_case(judged_run& run, const task_case& which) {
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

// Twice with different contents, so that a remembered result is seen; a third time with the
// second contents again, bit by bit.
bool judge_case(judged_run& run, const task_case& which) {
  run.work.select(which);
  case_record found;
  found.which = &which;
  found.distribution = run.work.distribution_text();
  std::vector<taken_output> first;
  for (uint64_t call = 0; call < 3; ++call) {
    if (call < 2) {
      run.work.fill(run.record.seed, call);
      run.work.find_truth();
    }
    call_measure unused;
    if (!run.call_candidate(false, unused)) {
      note_ended_case(run, which);
      return false;
    }
    if (call == 2) break;
    auto result = run.work.check(run.candidate.outputs());
    found.result = call == 0 ? result : worse_of(found.result, result);
    if (!found.result.pass()) break;
    if (call == 1) first = run.candidate.outputs();
  }
  found.pass = found.result.pass();
  if (found.pass && !same_bytes(first, run.candidate.outputs())) {
    run.record.deterministic = false;
    run.find("not_deterministic", severity::warning,
             "case " + which.name + ": the same inputs gave different bits");
  }
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

bool judged_run::call_candidate(bool cold, call_measure& measure) {
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

void judged_run::look_for_late_writes() {
  // As long as a thread has something left to do, up to a limit; an honest process sleeps.
  for (int look = 0; look < most_late_looks; ++look) {
    ::nanosleep(&late_write_pause, nullptr);
    if (auto changed = candidate.changed_since())
      return find("late_write", severity::critical, *changed);
    if (!wants_core(candidate.process().pid())) return;
  }
}

bool judge_correctness(judged_run& run) {
  bool wrong = false;
  for (const auto* which : in_order(run.work.spec())) {
    if (which->hidden && wrong) return false; // all visible ones are told, hidden ones only count
    if (run.expired()) {
      blame(run.record, {fault_class::candidate,
                         "timed_out",
                         "the candidate used up the time of its evaluation",
                         {}});
      return false;
    }
    if (judge_case(run, *which)) continue;
    if (run.candidate.process().ending() || run.record.fault.category == "out_of_bounds_write")
      return false;
    wrong = true;
    blame(run.record, wrong_result(run.work.spec(), run.record.cases.back()));
    if (which->hidden) return false;
  }
  run.record.correct = !wrong;
  return !wrong;
}

namespace {

secret_seed draw_seed() {
  secret_seed seed{};
  // 32 bytes are given in full once the pool is ready, which it is long before this runs.
  (void)!::getrandom(seed.data(), seed.size(), 0);
  return seed;
}

void run_phases(judged_run& run, double overhead) {
  if (judge_correctness(run)) {
    if (run.options.profiled)
      count_calls(run);
    else if (run.options.timed)
      judge_timing(run, overhead);
    run_anywhere();
  }
  if (!run.candidate.process().ending()) run.look_for_late_writes();
}

} // namespace

evaluation_record evaluate_library(referee_parts parts, prepared_task& prepared, int library,
                                   const evaluation_options& options) {
  evaluation_record record;
  if (auto ok = prepared.begin(); !ok) {
    record.fault = ok.error();
    return record;
  }
  auto process = parts.pool.take();
  auto candidate = process ? prepared.make_slot(std::move(*process), library)
                           : tl::unexpected<error>{process.error()};
  if (!candidate) {
    record.fault = candidate.error();
    return record;
  }
  auto& judged = **candidate;
  auto overhead = judged.measure_overhead();
  auto fault = overhead ? judged.load(call_deadline_ms)
                        : std::optional<error>{judged.process().ending()->fault};
  // Only now, so that nothing that was loaded can have been made for these inputs.
  record.seed = options.seeded ? options.seed : draw_seed();
  if (fault) {
    record.fault = *fault;
  } else {
    judged_run run{parts, prepared, options, judged, prepared.make_workload(), record};
    std::memcpy(&run.order, record.seed.data(), sizeof run.order);
    run_phases(run, *overhead);
  }
  record.output = judged.process().output();
  prepared.release(parts.pool.retire(std::move(*candidate)));
  return record;
}

// -- the request ------------------------------------------------------------------------------

namespace {

expected<descriptor> open_library(const std::string& path, const std::string& digest) {
  auto fail = [&](const std::string& cause) {
    return infrastructure_error("library_lost", "failed to open the library " + path + ": " + cause,
                                "build the candidate again");
  };
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return fail(std::strerror(errno));
  if (about.st_size > max_library_bytes) return fail("it is larger than 64 MiB");
  if (digest.empty()) return file;
  std::string bytes(static_cast<size_t>(about.st_size), '\0');
  if (::pread(file.get(), bytes.data(), bytes.size(), 0) != about.st_size)
    return fail("it cannot be read");
  if (sha256_hex(bytes) != digest) return fail("its content is not what was built");
  return file;
}

evaluation_options options_of(wire::EvaluateRequest::Reader request) {
  evaluation_options result;
  auto timing = request.getTiming();
  result.timed = timing.getEnabled();
  result.stopping.min_blocks = std::clamp<uint32_t>(timing.getMinBlocks(), 1, 1000);
  result.stopping.max_blocks =
      std::clamp<uint32_t>(timing.getMaxBlocks(), result.stopping.min_blocks, 1000);
  result.stopping.half_width = timing.getHalfWidth();
  result.stopping.budget_seconds = timing.getBudgetMs() * 1e-3;
  result.profiled = request.getProfile();
  auto seed = request.getSeed();
  result.seeded = seed.size() == result.seed.size();
  if (result.seeded) std::copy(seed.begin(), seed.end(), result.seed.begin());
  uint32_t deadline = request.getDeadlineMs() > 0 ? request.getDeadlineMs() : default_deadline_ms;
  result.deadline = now_seconds() + deadline * 1e-3;
  return result;
}

evaluation_record evaluate_files(referee_parts parts, wire::EvaluateRequest::Reader request,
                                 const task*& spec) {
  evaluation_record record;
  auto fail = [&](const error& fault) {
    record.fault = fault;
    return record;
  };
  if (auto size = request.getSeed().size(); size != 0 && size != record.seed.size())
    return fail({fault_class::configuration,
                 "bad_seed",
                 "failed to use a seed of " + std::to_string(size) + " bytes: it must have 32",
                 {}});
  auto prepared = parts.tasks.get(request.getTaskDir(), request.getTaskDigest());
  if (!prepared) return fail(prepared.error());
  spec = &(*prepared)->spec();
  auto library = open_library(request.getLibraryPath(), request.getLibrarySha256());
  if (!library) return fail(library.error());
  return evaluate_library(parts, **prepared, library->get(), options_of(request));
}

void write_result(const evaluation_record& x, const task* spec, wire::EvaluateResult::Builder out) {
  out.setCorrect(x.correct);
  out.setDeterministic(x.deterministic);
  auto cases = out.initCases(static_cast<unsigned>(x.cases.size()));
  for (unsigned i = 0; i < x.cases.size(); ++i) {
    const auto& from = x.cases[i];
    cases[i].setName(from.which->name);
    cases[i].setShape(shape_text(*spec, from.which->scalars));
    cases[i].setHidden(from.which->hidden);
    cases[i].setDistribution(from.distribution);
    cases[i].setMaxError(from.result.max_error);
    cases[i].setBound(from.result.bound);
    cases[i].setPass(from.pass);
    cases[i].setBadCount(from.result.bad);
    cases[i].setFirstBad(from.result.first_bad);
  }
  auto findings = out.initFindings(static_cast<unsigned>(x.findings.size()));
  for (unsigned i = 0; i < x.findings.size(); ++i) {
    findings[i].setRule(x.findings[i].rule);
    findings[i].setSeverity(static_cast<wire::Severity>(x.findings[i].level));
    findings[i].setEvidence(x.findings[i].evidence);
  }
  auto counters = out.initCounters(static_cast<unsigned>(x.counters.size()));
  for (unsigned i = 0; i < x.counters.size(); ++i) {
    counters[i].setName(x.counters[i].name);
    counters[i].setValue(x.counters[i].value);
    counters[i].setUnit(x.counters[i].unit);
  }
  auto missing = out.initMissing(static_cast<unsigned>(x.missing.size()));
  for (unsigned i = 0; i < x.missing.size(); ++i) missing.set(i, x.missing[i]);
  out.setOutput(x.output);
  out.setSeed(capnp::Data::Reader(x.seed.data(), x.seed.size()));
  set_fault(out.initFault(), x.fault);
}

void write_timing(const timing_record& x, const std::string& shape, wire::Timing::Builder out) {
  out.setMeasured(x.measured);
  out.setCandidateMs(x.candidate_seconds * 1e3);
  out.setReferenceMs(x.reference_seconds * 1e3);
  out.getSpeedup().setEstimate(x.speedup.estimate);
  out.getSpeedup().setLow(x.speedup.low);
  out.getSpeedup().setHigh(x.speedup.high);
  out.setSamples(x.samples);
  out.setClock(x.clock);
  out.setOverheadMs(x.overhead_seconds * 1e3);
  out.setRooflineMs(x.roofline_seconds * 1e3);
  out.setShape(shape);
  out.setNote(x.note);
}

} // namespace

Message<wire::EvaluateResult> evaluate_request(referee_parts parts,
                                               wire::EvaluateRequest::Reader request) {
  double started = now_seconds();
  const task* spec = nullptr;
  auto record = evaluate_files(parts, request, spec);
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder out) {
    write_result(record, spec, out);
    write_timing(record.timing, spec != nullptr ? shape_text(*spec, spec->timed.scalars) : "",
                 out.initTiming());
    out.setDevice(parts.gpu != nullptr ? parts.gpu->description() : parts.hardware.description());
    out.setSeconds(now_seconds() - started);
  });
}

} // namespace kernelmill

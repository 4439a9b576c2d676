#include "gpu/program/program_lane.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "gpu/program/program_baseline.hpp"
#include "gpu/program/program_timing.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/device.hpp"
#include "gpu/referee/evaluation.hpp"
#include "gpu/referee/not_timed.hpp"
#include "gpu/referee/result_words.hpp"
#include "gpu/referee/stolen_time.hpp"
#include "gpu/referee/task_check.hpp"
#include "gpu/task/program_answer.hpp"
#include "gpu/toolchain/build_attribution.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

constexpr uint32_t default_deadline_ms = 180'000;
constexpr size_t most_baselines = 16;
constexpr int build_deadline_ms = 300'000;
constexpr size_t least_samples = 6; // three blocks
constexpr size_t most_samples = 24;
constexpr double most_timing_seconds = 60;

// Rule of findings: what the verdict rests on.
constexpr const char* own_word = "own_word";

double seconds_until(double deadline) {
  return deadline - now_seconds();
}

expected<std::string> read_archive(const std::string& path, const std::string& digest) {
  auto fail = [&](const std::string& cause) {
    return infrastructure_error("library_lost", "failed to open the program " + path + ": " + cause,
                                "build the candidate again");
  };
  std::error_code problem;
  auto size = std::filesystem::file_size(path, problem);
  if (problem) return fail(problem.message());
  if (size > most_program_bytes) return fail("it is larger than 128 MiB");
  auto bytes = read_whole(path);
  if (!bytes) return fail("it cannot be read");
  if (!digest.empty() && sha256_hex(*bytes) != digest)
    return fail("its content is not what was built");
  return std::move(*bytes);
}

constexpr const char* was_not_run = "program_not_run"; // of run_program()

// Whether a run of the baseline says whose fault it is. An answer has a say in what its build
// leaves, and may leave what cannot be unpacked.
bool needs_control(const error& fault) {
  return fault.cls == fault_class::candidate || fault.category == was_not_run;
}

// A control of the same slot, at once after: whose doing it was.
error blamed_by_control(const error& fault, bool baseline_passes) {
  if (baseline_passes && fault.cls != fault_class::candidate)
    return {fault_class::candidate, "out_of_memory",
            "the files that its build left cannot be unpacked", "leave fewer and smaller files"};
  if (baseline_passes) return fault;
  return {fault_class::infrastructure, "control_failed",
          "failed to judge a program: the task's baseline, which passed before, fails beside it, "
          "too",
          "the work is tried again elsewhere"};
}

} // namespace

struct program_lane::state {
  state(sandbox& w, machine& m, const device* g, program_lane_options o)
      : walls(w), hardware(m), gpu(g), options(std::move(o)) {
    slot.cpus = options.cpus;
    slot.gpu_node = options.gpu_node;
    slot.driver = options.driver;
  }

  sandbox& walls;
  machine& hardware;
  const device* gpu;
  program_lane_options options;
  program_place slot;
  std::optional<program_tools> tools;
  std::map<std::string, program_baseline> baselines; // by the task's digest

  expected<void> learn();
  expected<program_baseline*> baseline_of(const task& x);
  expected<task_ptr> load(const std::string& directory, const std::string& digest);
  expected<judged_run> run(const task& x, const std::string& command, const std::string& archive,
                           const program_timing& timing, double deadline);
  std::optional<error> test(const task& x, const program_baseline& control,
                            const std::string& archive, double deadline);
  void time(const task& x, program_baseline& base, const std::string& archive, double half_width,
            double deadline, evaluation_record& record);
  expected<program_sample> sample(const task& x, program_baseline& base, const std::string& archive,
                                  bool candidate_first, double deadline);
  expected<std::pair<double, double>> timed_run(const task& x, program_baseline& base,
                                                const std::string& archive, bool is_baseline,
                                                double deadline);
  evaluation_record judge(wire::EvaluateRequest::Reader request, double deadline);
  std::string device_text() const {
    return gpu != nullptr ? gpu->description() : hardware.description();
  }
};

expected<void> program_lane::state::learn() {
  if (tools) return {};
  program_tool_choice choice;
  choice.backend = gpu != nullptr ? "cuda" : "cpu";
  choice.compiler = gpu != nullptr ? "" : options.compiler;
  if (gpu != nullptr) choice.architecture = gpu->architecture();
  auto found = ask_program_tools(walls, choice);
  KM_TRY(found);
  tools = std::move(*found);
  slot.path = tools->path;
  slot.mounts = tools->mounts;
  slot.library_path = tools->library_path;
  slot.cupti = tools->cupti;
  return {};
}

expected<task_ptr> program_lane::state::load(const std::string& directory,
                                             const std::string& digest) {
  auto loaded = load_task_folder(directory);
  KM_TRY(loaded);
  judging_terms terms;
  terms.backend = gpu != nullptr ? "cuda" : "cpu";
  auto here = on_terms(**loaded, terms);
  KM_TRY(here);
  if (!digest.empty() && digest != (*here)->digest)
    return configuration_error("task_changed",
                               "failed to use task " + (*here)->id +
                                   ": its files have changed since the run began",
                               "start a new run, or restore the task's files");
  KM_TRY(learn());
  const auto& needs = (*here)->program.needs;
  KM_TRY(check_needs(needs, *tools));
  auto name = device_text();
  if (needs.datacenter_gpu && gpu != nullptr &&
      (name.find("GeForce") != name.npos || name.find(" RTX ") != name.npos))
    return configuration_error(
        "needs_unmet", "the task needs a GPU for data centres, and this machine has " + name,
        "judge it on a machine that has it");
  return here;
}

expected<program_baseline*> program_lane::state::baseline_of(const task& x) {
  if (auto found = baselines.find(x.digest); found != baselines.end()) return &found->second;
  auto made = make_baseline(walls, slot, *tools, x, build_deadline_ms, options.memory_bytes);
  KM_TRY(made);
  if (baselines.size() >= most_baselines) baselines.clear();
  return &(baselines[x.digest] = std::move(*made));
}

expected<judged_run> program_lane::state::run(const task& x, const std::string& command,
                                              const std::string& archive,
                                              const program_timing& timing, double deadline) {
  auto own = static_cast<double>(x.program.timeout_s);
  auto left = std::max(0.1, std::min(own, seconds_until(deadline)));
  return run_and_read(walls, slot, {command, &archive, timing, static_cast<int>(left * 1e3)});
}

std::optional<error> program_lane::state::test(const task& x, const program_baseline& control,
                                               const std::string& archive, double deadline) {
  auto looked = run(x, x.program.test, archive, {}, deadline);
  if (!looked) return looked.error();
  return fault_of_run(*looked, control.test_endings, control.replaced, x.program.timeout_s);
}

// Seconds by the referee's clock and by the task's.
expected<std::pair<double, double>>
program_lane::state::timed_run(const task& x, program_baseline& base, const std::string& archive,
                               bool is_baseline, double deadline) {
  const auto& timing = x.program.timing;
  auto looked = run(x, x.program.benchmark, archive, timing, deadline);
  KM_TRY(looked);
  auto& endings = base.benchmark_endings;
  if (is_baseline && endings.empty()) endings = looked->reports.endings;
  if (auto why = fault_of_run(*looked, endings, base.replaced, x.program.timeout_s))
    return tl::unexpected<error>{*why};
  // What is left to do behind main, as the driver's end of a context, can be left out: it is the
  // time of neither.
  if (!endings.empty()) looked->outcome.seconds = looked->outcome.told_seconds;
  auto inside = inside_seconds(*looked, timing);
  KM_TRY(inside);
  return std::pair{looked->outcome.seconds, *inside};
}

expected<program_sample> program_lane::state::sample(const task& x, program_baseline& base,
                                                     const std::string& archive,
                                                     bool candidate_first, double deadline) {
  program_sample result;
  for (bool candidate : {candidate_first, !candidate_first}) {
    auto times = timed_run(x, base, candidate ? archive : base.archive, !candidate, deadline);
    if (!times) {
      auto why = times.error();
      // The baseline has run like this before, or will in every other process: not the candidate.
      if (!candidate && why.cls == fault_class::candidate)
        return infrastructure_error("baseline_not_timed",
                                    "failed to time the task's baseline: " + why.message);
      return tl::unexpected<error>{why};
    }
    (candidate ? result.wall_candidate : result.wall_baseline) = times->first;
    (candidate ? result.inside_candidate : result.inside_baseline) = times->second;
  }
  return result;
}

void program_lane::state::time(const task& x, program_baseline& base, const std::string& archive,
                               double half_width, double deadline, evaluation_record& record) {
  auto& timing = record.timing;
  bool inside = x.program.timing.mode != program_clock::process;
  timing.clock = inside ? "inside, confirmed outside" : "outside";
  std::vector<program_sample> samples;
  double begun = now_seconds();
  // One of each first, for pages, caches and the driver; what they take is not counted.
  auto warm = sample(x, base, archive, false, deadline);
  double each = now_seconds() - begun;
  expected<void> ended;
  if (!warm) ended = tl::unexpected{warm.error()};
  program_payment payment;
  while (ended && samples.size() < most_samples) {
    bool may_end = samples.size() >= least_samples;
    bool late = seconds_until(deadline) < 3 * each || now_seconds() - begun > most_timing_seconds;
    if (late && (may_end || seconds_until(deadline) < 2 * each)) break;
    auto one = sample(x, base, archive, samples.size() % 2 == 1, deadline);
    if (!one) {
      ended = tl::unexpected{one.error()};
      break;
    }
    samples.push_back(*one);
    if (samples.size() % 2 == 1) continue;
    payment = pay_program(samples, inside);
    if (samples.size() >= least_samples && payment.paid.relative_half_width() <= half_width) break;
  }
  if (!ended) {
    const auto& why = ended.error();
    timing.note = "not timed: " + why.message;
    timing.why_not = why.cls == fault_class::candidate ? untimed::candidate : untimed::machine;
    return;
  }
  if (samples.size() < 2) {
    timing.note = "not timed: its deadline left too little time";
    timing.why_not = untimed::candidate;
    return;
  }
  if (samples.size() % 2 == 1) samples.pop_back();
  timing.measured = true;
  timing.speedup = payment.paid;
  timing.candidate_seconds = payment.candidate_seconds;
  timing.reference_seconds = payment.baseline_seconds;
  timing.samples = static_cast<uint32_t>(samples.size());
  timing.note = payment.note;
  auto median_of = [&](double program_sample::*member) {
    std::vector<double> all;
    for (const auto& s : samples) all.push_back(s.*member);
    return median(std::move(all));
  };
  timing.by_call = {median_of(&program_sample::wall_candidate),
                    median_of(&program_sample::wall_baseline)};
  if (inside)
    timing.by_device = {median_of(&program_sample::inside_candidate),
                        median_of(&program_sample::inside_baseline)};
  for (const auto& s : samples)
    timing.pairs.push_back(inside ? both_seconds{s.inside_candidate, s.inside_baseline}
                                  : both_seconds{s.wall_candidate, s.wall_baseline});
  timing.baseline.calls = timing.samples;
}

evaluation_record program_lane::state::judge(wire::EvaluateRequest::Reader request,
                                             double deadline) {
  evaluation_record record;
  auto fail = [&](const error& fault) {
    record.fault = fault;
    return record;
  };
  double started = now_seconds();
  auto x = load(request.getTaskDir(), request.getTaskDigest());
  if (!x) return fail(x.error());
  if (request.getVisibleOnly())
    return fail({fault_class::candidate, "no_visible_case",
                 "the tests of a program are hidden: there is nothing to run before it is judged",
                 "submit it"});
  if (request.getProfile())
    return fail({fault_class::configuration, "unsupported_contract",
                 "failed to count in a program: its tests would be counted, too",
                 "`kernelmill eval` judges and times it"});
  auto archive = read_archive(request.getLibraryPath(), request.getLibrarySha256());
  if (!archive) return fail(archive.error());
  auto base = baseline_of(**x);
  if (!base) return fail(base.error());
  record.spans.push_back({"task", now_seconds() - started});
  record.case_count = 1;
  record.sealed = true; // the tests are hidden: nothing that was printed comes back
  started = now_seconds();
  auto fault = test(**x, **base, *archive, deadline);
  if (fault && fault->category == was_not_run) fault = test(**x, **base, *archive, deadline);
  if (fault && needs_control(*fault))
    fault = blamed_by_control(*fault, !test(**x, **base, (*base)->archive, deadline));
  record.spans.push_back({"tests", now_seconds() - started});
  if (fault) return fail(*fault);
  record.correct = record.found_right = true;
  record.findings.push_back(
      {own_word, severity::info,
       "tests and candidate share a process, which returned from its main with exit code 0"});
  if (!request.getTiming().getEnabled()) return record;
  if ((*x)->program.benchmark.empty()) {
    record.timing.note = "not timed: the task has no benchmark";
    return record;
  }
  started = now_seconds();
  time(**x, **base, *archive, request.getTiming().getHalfWidth(), deadline, record);
  settle_untimed(record, request.getTiming().getWidest());
  record.spans.push_back({"timing", now_seconds() - started});
  return record;
}

program_lane::program_lane(sandbox& walls, machine& hardware, const device* gpu,
                           program_lane_options options)
    : state_(std::make_unique<state>(walls, hardware, gpu, std::move(options))) {
  // nop
}

program_lane::~program_lane() = default;

Message<wire::EvaluateResult> program_lane::evaluate(wire::EvaluateRequest::Reader request) {
  double started = now_seconds();
  auto limit = request.getDeadlineMs() > 0 ? request.getDeadlineMs() : default_deadline_ms;
  limit -= std::min(limit, request.getSanitizeMs());
  stolen_time stolen;
  auto record = state_->judge(request, started + 0.95e-3 * limit);
  stolen.note(record);
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder out) {
    write_record(record, "", out);
    if (record.case_count > 0) {
      auto one = out.initCases(1)[0];
      one.setName("tests");
      one.setHidden(true);
      one.setPass(record.correct);
    }
    out.setDevice(state_->device_text());
    if (state_->gpu != nullptr) out.setDeviceUuid(state_->gpu->uuid());
    out.setSeconds(now_seconds() - started);
  });
}

namespace {

// Answers that must fail, each with what it would show if it passed.
struct stub {
  std::string name;
  std::vector<program_file> files;
};

std::vector<stub> stubs_of(const program_task& p) {
  bool python = p.answer_file.ends_with(".py");
  auto empty = p.baseline;
  for (auto& file : empty) file.text = "\n";
  std::vector<stub> result{{"an empty answer", std::move(empty)}};
  auto leaves = p.baseline;
  const std::string leave = python
                                ? "import os\nos._exit(0)\n"
                                : "#include <unistd.h>\n__attribute__((constructor)) static void "
                                  "kernelmill_leaves(void) { _exit(0); }\n";
  for (auto& file : leaves)
    if (file.path == p.answer_file) file.text = leave + file.text;
  result.push_back({"an answer that ends the process before the tests", std::move(leaves)});
  return result;
}

} // namespace

Message<wire::CheckResult> program_lane::check(const std::string& directory) {
  double started = now_seconds();
  check_record record;
  auto done = [&] { return check_result(record, now_seconds() - started); };
  auto problem = [&](const std::string& text) {
    record.problems.push_back(text);
    return done();
  };
  auto x = state_->load(directory, {});
  if (!x && x.error().category == "needs_unmet") {
    record.notes.push_back("not checked: " + x.error().message);
    return done();
  }
  if (!x) return problem(render(x.error()));
  const auto& p = (*x)->program;
  auto base = state_->baseline_of(**x);
  if (!base) return problem(render(base.error()));
  const double deadline = started + 600;
  if (!p.benchmark.empty()) {
    auto times = state_->timed_run(**x, **base, (*base)->archive, true, deadline);
    if (!times) return problem("the baseline cannot be timed: " + times.error().message);
    record.notes.push_back(
        fmt::format("the baseline takes {:.3g} ms by the clock {}, {:.3g} ms as a "
                    "process",
                    times->second * 1e3, to_string(p.timing.mode), times->first * 1e3));
  }
  for (const auto& one : stubs_of(p)) {
    auto built = run_program_build(state_->walls, *state_->tools, p, one.files, build_deadline_ms,
                                   state_->options.memory_bytes);
    if (!built) return problem(render(built.error()));
    if (has_failed(*built)) continue;
    auto bytes = read_whole(built->product.get());
    if (!bytes) return problem("failed to read what was built of " + one.name);
    if (auto why = state_->test(**x, **base, *bytes, deadline); !why)
      record.problems.push_back(one.name + " passes the tests");
    else if (why->cls != fault_class::candidate)
      return problem(render(*why));
  }
  return done();
}

} // namespace kernelmill

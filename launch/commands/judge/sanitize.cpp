// `kernelmill sanitize FILE`: sanitizers around a candidate, in the sandbox. On a GPU it is
// compute-sanitizer, of any contract; on a CPU those of g++, of the contract `native`.

#include <array>

#include <fmt/format.h>

#include "gpu/examine/host_checks.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/candidate_source.hpp"
#include "launch/commands/judge/examined.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/judge/tool_reports.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/machine/accelerators.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr std::array gpu_checks = {"memcheck", "racecheck", "initcheck", "synccheck"};

std::string problem_of(const sanitizer_examination& x) {
  if (x.run.timed_out) return "timed_out";
  // A launch that the driver refuses, or a kernel that lost the context without a finding.
  if (found_nothing(x.report) && x.run.status.code != 0) return "calls_failed";
  return sanitizer_document(x.report)["problem"].get<std::string>();
}

/// What checks found, as they come.
struct checks_made {
  json list = json::array();
  bool clean = true;
  bool complete = true;
  std::vector<bundles::tool_report> reports;
};

void tell(const invocation& in, const std::string& check, const sanitizer_examination& found,
          const char* tool, checks_made& into) {
  auto problem = problem_of(found);
  into.complete = into.complete && problem == "none";
  into.clean = into.clean && problem == "none" && found_nothing(found.report);
  if (!found.run.report.empty())
    into.reports.push_back({"sanitizer", check + ".txt", found.run.report});
  auto one = sanitizer_document(found.report);
  one["tool"] = tool;
  one["check"] = check;
  one["problem"] = problem;
  one["seconds"] = found.run.seconds;
  one["said"] = said_last(found.run);
  into.list.push_back(std::move(one));
  if (in.json) return;
  cli::print(cli::paint(in.colour_out, cli::colour::bold, check) + "\n");
  cli::print(sanitizer_text(found.report));
  if (problem != "none") {
    auto words = cli::clean(found.report.words);
    cli::talk(fmt::format("{}: no whole report ({}): {}", check, problem,
                          words.empty() ? said_last(found.run) : words));
  }
}

expected<int> finish(const invocation& in, examined_candidate& x, checks_made made,
                     left_bundle& bundle) {
  auto document = head_of(x);
  document["checks"] = std::move(made.list);
  if (x.bench.backend() == "cpu") document["left_out"] = {no_initcheck};
  if (in.json) cli::print_json(document);
  bundle.tools.sanitizer = {{"status", made.complete ? "completed" : "incomplete"},
                            {"clean", made.clean},
                            {"checks", document["checks"]}};
  bundle.reports = std::move(made.reports);
  KM_TRY(leave_examined(x, std::move(document), bundle));
  return made.clean ? cli::exit_ok : cli::exit_quality;
}

bool is_wanted(const invocation& in, std::string_view check) {
  return in.value("--tool") == "all" || in.value("--tool") == check;
}

// -- a GPU ----------------------------------------------------------------------------------------

expected<int> sanitize_on_gpu(const invocation& in, examined_candidate& x, left_bundle& bundle) {
  auto files = lay_out_candidate(x.bench.walls(), x.python, *x.candidate.what, *x.artifact,
                                 x.options.limit_ms);
  KM_TRY(files);
  auto tool = toolkit_program("compute-sanitizer");
  if (tool.empty())
    return infrastructure_error("tool_missing", "failed to find compute-sanitizer",
                                "install the CUDA toolkit (cuda-sanitizer), or put it on PATH");
  checks_made made;
  for (std::string check : gpu_checks) {
    if (!is_wanted(in, check)) continue;
    cli::show_activity("running " + check);
    auto found = examine_by_sanitizer(x.bench.walls(), x.options, tool, check, *files);
    KM_TRY(found);
    tell(in, check, *found, "compute-sanitizer", made);
  }
  return finish(in, x, std::move(made), bundle);
}

// -- a CPU ----------------------------------------------------------------------------------------

// What compiles without a sanitizer and not with it has no report.
sanitizer_examination not_built(const error& why) {
  sanitizer_examination result;
  result.run.status.code = 0;
  result.report.problem = sanitizer_problem::no_report;
  result.report.words = why.message;
  return result;
}

expected<int> sanitize_on_cpu(const invocation& in, examined_candidate& x, left_bundle& bundle) {
  const auto& what = *x.candidate.what;
  checks_made made;
  for (auto check : host_checks) {
    std::string name{to_string(check)};
    if (!is_wanted(in, name)) continue;
    cli::show_activity("running " + name);
    auto found =
        examine_on_host(x.bench.walls(), x.options, {}, what, x.candidate.parsed.kernel, check);
    if (!found && found.error().cls == fault_class::candidate) found = not_built(found.error());
    KM_TRY(found);
    auto* tool = check == host_check::memory ? "AddressSanitizer, UndefinedBehaviorSanitizer"
                                             : "ThreadSanitizer";
    tell(in, name, *found, tool, made);
  }
  if (!in.json && in.value("--tool") == "all") cli::talk(no_initcheck);
  return finish(in, x, std::move(made), bundle);
}

// The name of a file says what its author meant; where it does not, the machine decides.
std::string wanted_backend(const invocation& in) {
  auto wanted = in.value("--backend");
  auto file = in.value("FILE");
  if (wanted != "auto") return wanted;
  if (is_hip_name(file)) return "hip";
  if (file.ends_with(".cpp") || file.ends_with(".cc") || file.ends_with(".cxx")) return "cpu";
  return file.ends_with(".cu") || file.ends_with(".py") ? "cuda" : wanted;
}

tl::unexpected<error> not_on_a_cpu(const std::string& cause) {
  return configuration_error("unsupported_contract", "failed to check this candidate: " + cause,
                             "name --backend cuda where there is a GPU");
}

expected<int> sanitize_candidate(const invocation& in) {
  auto bundle = left_bundle::begin(in, "sanitize");
  KM_TRY(bundle);
  auto x = prepare_examined(in, wanted_backend(in));
  KM_TRY(x);
  bool on_cpu = x->bench.backend() == "cpu";
  if (on_cpu && x->candidate.what->contract != contract_kind::native)
    return not_on_a_cpu("on a CPU sanitizers look at the contract native alone");
  if (on_cpu && in.value("--tool") == "initcheck") return not_on_a_cpu(no_initcheck);
  if (on_cpu && in.value("--tool") == "synccheck")
    return not_on_a_cpu("synccheck looks at barriers of a GPU's blocks");
  if (!x->artifact) return say_not_compiled(in, *x, *bundle);
  return on_cpu ? sanitize_on_cpu(in, *x, *bundle) : sanitize_on_gpu(in, *x, *bundle);
}

} // namespace

cli::command sanitize_row() {
  return {
      "sanitize",
      "Runs sanitizers around one kernel in the sandbox, and lists what they find.",
      "kernelmill sanitize kernel.cu --task native/row_sum\n"
      "kernelmill sanitize kernel.cu --task native/row_sum --tool racecheck --json\n"
      "kernelmill sanitize kernel.cpp --task native/row_sum --backend cpu\n"
      "kernelmill sanitize answer.py --task torch/row_softmax --python venv/bin/python",
      "On a GPU it is compute-sanitizer. On a CPU, for the contract `native`, it is "
      "AddressSanitizer and UndefinedBehaviorSanitizer\n"
      "(memcheck) and ThreadSanitizer (racecheck) of g++, with which the source is built again.\n"
      "The kernels run on the cases that are not hidden and on the shape that a CPU is timed "
      "at, on fresh contents, with\n"
      "buffers exactly as large as their tensors; a Python module on inputs that the problem "
      "draws. Host code of a library or\n"
      "a module shares the process with the tool: a finding is one, and a clean report proves "
      "nothing. Exit code 5:\n"
      "something was found, or a tool has no report.",
      {examined_file()},
      {examined_task(),
       {"--tool",
        "NAME",
        "One of compute-sanitizer's tools; a CPU has memcheck and racecheck.",
        "all",
        false,
        {"all", "memcheck", "racecheck", "initcheck", "synccheck"},
        nothing},
       backend_option({"auto", "cpu", "cuda", "hip"}),
       bundle_option(),
       tasks_root(),
       python_path()},
      sanitize_candidate};
}

} // namespace kernelmill::commands

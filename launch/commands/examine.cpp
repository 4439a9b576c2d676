// `kernelmill profile FILE` and `kernelmill sanitize FILE`: ncu and compute-sanitizer around a
// candidate of the contract `device`, in the sandbox.

#include <array>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gpu/examine/examine.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/commands/tool_reports.hpp"
#include "launch/commands/workbench.hpp"
#include "launch/config/paths.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/machine/accelerators.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/fault.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr unsigned calls_of_profile = 50; // all but the last wake the GPU
constexpr std::array checks = {"memcheck", "racecheck", "initcheck", "synccheck"};

/// A candidate on its way into a tool.
struct examined_candidate {
  workbench bench;
  examine_options options;
  std::string device;
  offered_candidate candidate;
  std::string log;                     // of a compiler that refused it
  std::optional<std::string> artifact; // nothing: it did not compile
};

tl::unexpected<error> not_device_code(const task& x) {
  return configuration_error(
      "unsupported_contract",
      "failed to run a tool around this candidate: its contract is " +
          std::string{to_string(x.contract)} +
          ", whose host code would share the process with what writes the report",
      "give it launch lines (contract device), or run the tool on a program of yours: "
      "`kernelmill profile command`");
}

expected<void> build_it(examined_candidate& x) {
  auto built = build_candidate(x.bench.toolchain(), x.candidate);
  auto opened = built.open();
  x.log = std::string{opened->getLog().cStr(), opened->getLog().size()};
  if (!opened->getCompiled()) {
    auto fault = fault_of(opened->getFault());
    if (fault.cls == fault_class::infrastructure) return tl::unexpected<error>{fault};
    if (x.log.empty()) x.log = fault.message;
    return {};
  }
  std::string path = opened->getLibraryPath();
  auto bytes = read_whole(path);
  if (!bytes) return infrastructure_error("io_error", "failed to read " + path);
  x.artifact = std::move(*bytes);
  return {};
}

expected<examined_candidate> prepare(const invocation& in) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto loaded = choose_task(*roots, in.value("--task"));
  KM_TRY(loaded);
  auto text = read_candidate(in.value("FILE"));
  KM_TRY(text);
  auto backend = choose_backend("cuda");
  KM_TRY(backend);
  backend->gpus.resize(1);
  auto here = on_terms(**loaded, terms_of(*backend, {}));
  KM_TRY(here);
  auto what = on_contract(*here, "auto", *text);
  KM_TRY(what);
  if ((*what)->contract != contract_kind::device) return not_device_code(**what);
  examine_options options;
  options.program = helper_program("kernelmill-candidate");
  options.gpu_node = backend->gpus.front().node;
  options.driver = driver_library();
  auto device = hardware_text(*backend);
  auto bench = workbench::open(std::move(*backend));
  KM_TRY(bench);
  bench->keep_lines();
  auto parsed = as_source(*text, **what);
  if (!parsed.ok)
    return configuration_error("usage", "failed to read the candidate: " + parsed.problems.front());
  auto sha256 = sha256_hex(parsed.kernel);
  examined_candidate result{std::move(*bench),
                            std::move(options),
                            std::move(device),
                            {std::move(*what), std::move(parsed), std::move(sha256)},
                            {},
                            {}};
  KM_TRY(build_it(result));
  return result;
}

json head_of(const examined_candidate& x) {
  return {{"task", x.candidate.what->id},
          {"candidate_sha256", x.candidate.sha256},
          {"contract", to_string(x.candidate.what->contract)},
          {"device", cli::clean(x.device)},
          {"compiled", x.artifact.has_value()}};
}

int say_not_compiled(const invocation& in, const examined_candidate& x) {
  auto document = head_of(x);
  document["log"] = cli::clean(x.log);
  if (in.json)
    cli::print_json(document);
  else
    cli::print(cli::clean(x.log) + "\nnot compiled\n");
  return cli::exit_quality;
}

std::string said_last(const examination& x) {
  auto text = cli::clean(x.said);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// -- ncu ------------------------------------------------------------------------------------------

std::string next_of(const std::string& problem, ncu_problem by_ncu) {
  if (problem == "timed_out") return "does each kernel end? `--pack quick` takes the least time";
  if (by_ncu == ncu_problem::no_permission || by_ncu == ncu_problem::no_profiler)
    return hint_of(by_ncu);
  return "`kernelmill eval` says whether the kernel runs; --json has the tool's last words in "
         "`said`";
}

expected<int> profile_candidate(const invocation& in) {
  auto x = prepare(in);
  KM_TRY(x);
  if (!x->artifact) return say_not_compiled(in, *x);
  const auto& what = *x->candidate.what;
  auto files = lay_out(what, *x->artifact, {what.timed}, calls_of_profile, draw_seed());
  KM_TRY(files);
  auto ncu = toolkit_program("ncu");
  if (ncu.empty())
    return infrastructure_error("tool_missing", "failed to find ncu",
                                "install Nsight Compute, or put its folder on PATH");
  auto pack = in.value("--pack") == "full" ? metric_pack::full : metric_pack::quick;
  auto found = examine_by_ncu(x->bench.walls(), x->options, ncu, pack, calls_of_profile, *files);
  KM_TRY(found);
  auto problem = found->run.timed_out && found->report.kernels.empty()
                     ? std::string{"timed_out"}
                     : std::string{to_string(found->report.problem)};
  auto said = said_last(found->run);
  if (in.json) {
    auto document = head_of(*x);
    document.update(ncu_document(found->report));
    document["problem"] = problem;
    document["shape"] = shape_text(what, what.timed.scalars);
    document["pack"] = in.value("--pack");
    document["refused_metrics"] = found->refused;
    document["seconds"] = found->run.seconds;
    document["said"] = said;
    cli::print_json(document);
  } else {
    cli::print(fmt::format("{}  {}  at {}\n", what.id, cli::clean(x->device),
                           shape_text(what, what.timed.scalars)));
    cli::print(ncu_text(found->report, in.colour_out));
  }
  if (problem == "none") return cli::exit_ok;
  auto words = cli::clean(found->report.words);
  cli::talk(fmt::format("no profile ({}): {}\nnext: {}", problem, words.empty() ? said : words,
                        next_of(problem, found->report.problem)));
  return cli::exit_quality;
}

// -- compute-sanitizer ----------------------------------------------------------------------------

std::string problem_of(const sanitizer_examination& x) {
  if (x.run.timed_out) return "timed_out";
  // A launch that the driver refuses, or a kernel that lost the context without a finding.
  if (found_nothing(x.report) && x.run.status.code != 0) return "calls_failed";
  return sanitizer_document(x.report)["problem"].get<std::string>();
}

expected<int> sanitize_candidate(const invocation& in) {
  auto x = prepare(in);
  KM_TRY(x);
  if (!x->artifact) return say_not_compiled(in, *x);
  const auto& what = *x->candidate.what;
  auto files = lay_out(what, *x->artifact, shown_cases(what), 1, draw_seed());
  KM_TRY(files);
  auto tool = toolkit_program("compute-sanitizer");
  if (tool.empty())
    return infrastructure_error("tool_missing", "failed to find compute-sanitizer",
                                "install the CUDA toolkit (cuda-sanitizer), or put it on PATH");
  auto list = json::array();
  bool clean = true;
  for (std::string check : checks) {
    if (in.value("--tool") != "all" && in.value("--tool") != check) continue;
    auto found = examine_by_sanitizer(x->bench.walls(), x->options, tool, check, *files);
    KM_TRY(found);
    auto problem = problem_of(*found);
    clean = clean && problem == "none" && found_nothing(found->report);
    auto one = sanitizer_document(found->report);
    one["check"] = check;
    one["problem"] = problem;
    one["seconds"] = found->run.seconds;
    one["said"] = said_last(found->run);
    if (!in.json) {
      cli::print(cli::paint(in.colour_out, cli::colour::bold, check) + "\n");
      cli::print(sanitizer_text(found->report));
      if (problem != "none") {
        auto words = cli::clean(found->report.words);
        cli::talk(fmt::format("{}: no whole report ({}): {}", check, problem,
                              words.empty() ? said_last(found->run) : words));
      }
    }
    list.push_back(std::move(one));
  }
  if (in.json) {
    auto document = head_of(*x);
    document["checks"] = std::move(list);
    cli::print_json(document);
  }
  return clean ? cli::exit_ok : cli::exit_quality;
}

cli::argument_spec source_file() {
  return {"FILE", "Source of the contract `device`; - reads stdin.", true, false, completes::file,
          {}};
}

cli::option_spec task_option() {
  return {"--task", "TASK", "Id of the task.", "", true, {}, completes::task};
}

} // namespace

cli::command profile_row() {
  return {"profile",
          "Runs ncu around one kernel in the sandbox, and says what limits it.",
          "kernelmill profile kernel.cu --task native/row_sum\n"
          "kernelmill profile kernel.cu --task native/row_sum --pack full --json",
          "For the contract `device`: the process has no host code of the candidate, so that the "
          "report is ncu's own word.\n"
          "The kernels run at the timed shape, on fresh contents. The GPU's clocks are left alone. "
          "Leave the GPU to it: what is\n"
          "timed there meanwhile is slower. Exit code 5: there is no profile; stderr says why.",
          {source_file()},
          {task_option(),
           {"--pack",
            "NAME",
            "`quick`: which limit of the machine is near; `full`: all that rules read.",
            "quick",
            false,
            {"quick", "full"},
            nothing},
           tasks_root()},
          profile_candidate};
}

cli::command sanitize_row() {
  return {"sanitize",
          "Runs compute-sanitizer around one kernel in the sandbox, and lists what it finds.",
          "kernelmill sanitize kernel.cu --task native/row_sum\n"
          "kernelmill sanitize kernel.cu --task native/row_sum --tool racecheck --json",
          "For the contract `device`. The kernels run on the cases that are not hidden and on the "
          "shape that a CPU is timed at,\n"
          "on fresh contents, with buffers exactly as large as their tensors. Exit code 5: "
          "something was found, or a tool has no report.",
          {source_file()},
          {task_option(),
           {"--tool",
            "NAME",
            "One of compute-sanitizer's tools.",
            "all",
            false,
            {"all", "memcheck", "racecheck", "initcheck", "synccheck"},
            nothing},
           tasks_root()},
          sanitize_candidate};
}

} // namespace kernelmill::commands

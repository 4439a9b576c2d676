// `kernelmill eval`: one candidate through the same compiler, referee and judge as in a run.

#include <algorithm>

#include "actors/governance/judge.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/candidate_source.hpp"
#include "launch/commands/judge/compile_only.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/remote/on_host.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/judging/verdict_text.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

/// Builds, evaluates and collects what the judge needs.
expected<Message<wire::TurnFacts>> establish(workbench& bench, const invocation& in,
                                             const offered_candidate& x) {
  Message<wire::BuildResult> built;
  Message<wire::EvaluateResult> evaluated;
  std::optional<error> fault;
  cli::show_activity("compiling");
  if (x.parsed.ok) built = build_candidate(bench.toolchain(), x);
  if (auto b = built.open(); x.parsed.ok && b->getCompiled()) {
    auto referee = bench.referee();
    KM_TRY(referee);
    cli::show_activity(in.has("--no-timing") ? "checking" : "checking and timing");
    auto result = evaluate_candidate(
        **referee, {!in.has("--no-timing"), in.value("--seed"), {}, in.value("--clock")}, x, *b);
    if (!result && result.error().cls == fault_class::configuration)
      return tl::unexpected<error>{result.error()};
    if (result)
      evaluated = *result;
    else
      fault = result.error();
  }
  return facts_of(x, built, evaluated, fault);
}

const std::vector<std::string> eval_columns{
    "task",        "outcome",      "category",     "reward",          "speedup",
    "speedup_low", "speedup_high", "candidate_ms", "baseline_ms",     "compiled",
    "correct",     "cases",        "cases_passed", "candidate_sha256"};

// The verdict for programs, in a row: with -o csv, --columns or --no-headers.
void print_verdict_row(const nlohmann::ordered_json& x) {
  auto text = [](const nlohmann::ordered_json& value) {
    return value.is_null() ? "-" : value.is_string() ? value.get<std::string>() : value.dump();
  };
  const auto& timing = x["timing"];
  auto passed = std::count_if(x["cases"].begin(), x["cases"].end(),
                              [](const auto& one) { return one["pass"] == true; });
  cli::print(cli::format_table(
      eval_columns,
      {{text(x["task"]), text(x["outcome"]), text(x["category"]), text(x["reward"]),
        text(timing["speedup"]["estimate"]), text(timing["speedup"]["low"]),
        text(timing["speedup"]["high"]), text(timing["candidate_ms"]), text(timing["reference_ms"]),
        text(x["compiled"]), text(x["correct"]), std::to_string(x["cases"].size()),
        std::to_string(passed), text(x["candidate_sha256"])}}));
}

} // namespace

expected<int> eval(const invocation& in) {
  if (in.has("--on")) return on_host(in, eval_row());
  bool compiled_only = in.has("--compile-only");
  if (in.has("--arch") && !compiled_only)
    return configuration_error("usage",
                               "failed to use --arch: an evaluation builds for this machine's GPU",
                               "add --compile-only");
  auto config = governance_rules(in.value("--preset"));
  KM_TRY(config);
  auto bundle = left_bundle::begin(in, "eval");
  KM_TRY(bundle);
  auto offer = open_candidate(in, compiled_only ? candidate_use::building : candidate_use::judging);
  KM_TRY(offer);
  auto repeats = in.integer("--determinism-runs", 2, 64);
  KM_TRY(repeats);
  auto& bench = offer->bench;
  bench.repeat_calls(static_cast<unsigned>(*repeats));
  auto& candidate = offer->candidate;
  if (compiled_only) return compile_only(in, bench, candidate, *bundle);
  auto facts = establish(bench, in, candidate);
  KM_TRY(facts);
  auto opened = facts->open();
  auto verdict = judge(*opened, *config);
  auto judged = verdict.open();
  auto document = verdict_json(*opened, *judged);
  for (const auto& layer : bench.layers())
    document["sandbox"][layer.name] = layer.state == layer_state::active   ? "active"
                                      : layer.state == layer_state::weaker ? "weaker"
                                                                           : "missing";
  if (in.json) {
    cli::print_json(document);
  } else if (cli::prints_tables_alone()) {
    print_verdict_row(document);
  } else {
    cli::print(verdict_text(*opened, *judged, in.colour_out));
    if (auto profile = profile_text(opened->getProfile()); !profile.empty())
      cli::print("\n" + profile);
  }
  bundle->facts = *facts;
  bundle->verdict = verdict;
  bundle->output = std::move(document);
  KM_TRY(bundle->leave(candidate, bench));
  return judged->getOutcome() == wire::Outcome::INFRASTRUCTURE ? cli::exit_failed : cli::exit_ok;
}

cli::command eval_row() {
  return {
      "eval",
      "Builds, runs and judges one kernel.",
      "kernelmill eval --task native/row_sum kernel.cpp\n"
      "kernelmill eval --task native/row_sum --json - < kernel.cpp\n"
      "kernelmill eval --task native/row_sum --bundle found kernel.cpp\n"
      "kernelmill eval --task native/row_sum --compile-only --arch gfx90a kernel.hip\n"
      "kernelmill eval --task kernelbench/level1/19_ReLU --python venv/bin/python answer.py",
      "A kernel that fails is a normal result: exit code 0. Exit code 1 means that the machine "
      "failed.\n"
      "HIP kernels are judged on an AMD GPU, or on an NVIDIA GPU through HIP's own headers.",
      {{"FILE", "Source file; - reads stdin.", true, false, completes::file, {}}},
      with_torch_options(with_candidate_options(
          {{"--task", "TASK", "Id of the task.", "", true, {}, completes::task},
           {"--preset", "NAME", "Reward preset.", "kevin", false, reward_presets(), nothing},
           {"--seed",
            "HEX",
            "Secret seed of an earlier evaluation, 64 hex digits, to replay it. Default: random.",
            "",
            false,
            {},
            nothing},
           {"--determinism-runs",
            "N",
            "Calls on the same contents of each case whose results are compared, 2 to 64.",
            std::to_string(defaults::determinism_runs),
            false,
            {},
            nothing},
           clock_option(),
           flag("--no-timing", "Checks correctness and skips timing."),
           flag("--compile-only", "Builds and prints the compiler's diagnostics. Needs no GPU."),
           architecture_option("With --compile-only: target architecture, such as sm_90 or gfx90a. "
                               "Default: this machine's GPU, else sm_90, of HIP gfx90a."),
           flag("--completion", "FILE is a whole completion with <think> and <KERNEL>."),
           bundle_option(),
           tasks_root(),
           on_option()})),
      eval};
}

} // namespace kernelmill::commands

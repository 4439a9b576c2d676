// `kernelmill eval`: one candidate through the same compiler, referee and judge as in a run.

#include <charconv>

#include <nlohmann/json.hpp>

#include "actors/governance/judge.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/compile_only.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/commands/workbench.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/judging/verdict_text.hpp"
#include "launch/machine/python.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::commands {

namespace {

// The name of a file says what its author meant; where it does not, the machine decides.
expected<chosen_backend> backend_of(const invocation& in, const task& x) {
  auto wanted = in.value("--backend");
  auto file = in.value("FILE");
  auto architecture = in.value("--arch");
  if (!architecture.empty() && !in.has("--compile-only"))
    return configuration_error("usage",
                               "failed to use --arch: an evaluation builds for this machine's GPU",
                               "add --compile-only");
  bool host_code = file.ends_with(".cpp") || file.ends_with(".cc") || file.ends_with(".cxx");
  if (wanted == "auto" && file.ends_with(".hip")) wanted = "hip";
  // An architecture says more than the name: a .cu file may be one of HIP's as well.
  if (wanted == "auto" && file.ends_with(".cu") && architecture.empty()) wanted = "cuda";
  bool free = wanted == "auto" && in.value("--gpu").empty() && architecture.empty();
  if (free && (host_code || !x.names("cuda"))) wanted = "cpu";
  int only = -1;
  if (auto text = in.value("--gpu"); !text.empty()) {
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), only);
    if (problem != std::errc{} || end != text.data() + text.size() || only < 0)
      return configuration_error("usage", "failed to read --gpu: \"" + text + "\" is no number",
                                 "`kernelmill doctor` lists the GPUs, from 0 on");
  }
  return in.has("--compile-only") ? choose_compiler(wanted, architecture, only)
                                  : choose_backend(wanted, only);
}

/// Builds, evaluates and collects what the judge needs.
expected<Message<wire::TurnFacts>> establish(workbench& bench, const invocation& in,
                                             const offered_candidate& x) {
  Message<wire::BuildResult> built;
  Message<wire::EvaluateResult> evaluated;
  std::optional<error> fault;
  if (x.parsed.ok) built = build_candidate(bench.toolchain(), x);
  if (auto b = built.open(); x.parsed.ok && b->getCompiled()) {
    auto referee = bench.referee();
    KM_TRY(referee);
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

} // namespace

expected<int> eval(const invocation& in) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto loaded = choose_task(*roots, in.value("--task"));
  KM_TRY(loaded);
  auto text = read_candidate(in.value("FILE"));
  KM_TRY(text);
  auto config = governance_rules(in.value("--preset"));
  KM_TRY(config);
  auto backend = backend_of(in, **loaded);
  KM_TRY(backend);
  auto here = on_terms(**loaded, terms_of(*backend, torch_choice_of(in)));
  KM_TRY(here);
  auto parsed = in.has("--completion") ? parse_completion(*text) : as_source(*text, **here);
  auto x = on_contract(*here, in.value("--contract"), parsed.kernel);
  KM_TRY(x);
  if ((*x)->contract == contract_kind::torch) {
    auto python = find_python(in.value("--python"));
    KM_TRY(python);
    backend->python = python->path;
  }
  auto bench = workbench::open(std::move(*backend));
  KM_TRY(bench);
  auto layers = bench->layers();
  if (auto fell = layers_that_fell(layers); !fell.empty()) cli::talk("warning: " + fell);
  auto sha256 = sha256_hex(parsed.ok ? parsed.kernel : *text);
  offered_candidate candidate{std::move(*x), std::move(parsed), std::move(sha256)};
  if (in.has("--compile-only")) return compile_only(in, *bench, candidate);
  auto facts = establish(*bench, in, candidate);
  KM_TRY(facts);
  auto opened = facts->open();
  auto verdict = judge(*opened, *config);
  auto judged = verdict.open();
  if (in.json) {
    auto document = verdict_json(*opened, *judged);
    for (const auto& layer : layers)
      document["sandbox"][layer.name] = layer.state == layer_state::active   ? "active"
                                        : layer.state == layer_state::weaker ? "weaker"
                                                                             : "missing";
    cli::print_json(document);
  } else {
    cli::print(verdict_text(*opened, *judged, in.colour_out));
    if (auto profile = profile_text(opened->getProfile()); !profile.empty())
      cli::print("\n" + profile);
  }
  return judged->getOutcome() == wire::Outcome::INFRASTRUCTURE ? cli::exit_failed : cli::exit_ok;
}

cli::command eval_row() {
  return {
      "eval",
      "Builds, runs and judges one kernel.",
      "kernelmill eval --task native/row_sum kernel.cpp\n"
      "kernelmill eval --task native/row_sum --json - < kernel.cpp\n"
      "kernelmill eval --task native/row_sum --compile-only --arch gfx90a kernel.hip\n"
      "kernelmill eval --task kernelbench/level1/19_ReLU --python venv/bin/python answer.py",
      "A kernel that fails is a normal result: exit code 0. Exit code 1 means that the machine "
      "failed.\n"
      "HIP kernels, for AMD GPUs, are compiled but not judged yet.",
      {{"FILE", "Source file; - reads stdin.", true, false, completes::file, {}}},
      with_torch_options(
          {{"--task", "TASK", "Id of the task.", "", true, {}, completes::task},
           {"--contract",
            "NAME",
            "Contract of FILE: source of a `native` library, `device` code or a `torch` module. "
            "`auto` decides by the task and by launch lines.",
            "auto",
            false,
            {"auto", "native", "device", "torch"},
            nothing},
           {"--backend",
            "NAME",
            "Where it runs. `auto` decides by the file's name, then by the machine's hardware.",
            "auto",
            false,
            {"auto", "cpu", "cuda", "hip"},
            nothing},
           {"--gpu",
            "N",
            "Number of the GPU. Default: the first in CUDA_VISIBLE_DEVICES.",
            "",
            false,
            {},
            nothing},
           {"--preset", "NAME", "Reward preset.", "kevin", false, reward_presets(), nothing},
           {"--seed",
            "HEX",
            "Secret seed of an earlier evaluation, 64 hex digits, to replay it. Default: random.",
            "",
            false,
            {},
            nothing},
           clock_option(),
           flag("--no-timing", "Checks correctness and skips timing."),
           flag("--compile-only", "Builds and prints the compiler's diagnostics. Needs no GPU."),
           {"--arch",
            "ARCH",
            "With --compile-only: target architecture, such as sm_90 or gfx90a. Default: this "
            "machine's GPU.",
            "",
            false,
            {},
            nothing},
           flag("--completion", "FILE is a whole completion with <think> and <KERNEL>."),
           tasks_root()}),
      eval};
}

} // namespace kernelmill::commands

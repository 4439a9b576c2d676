// `kernelmill eval`: one candidate through the same compiler, referee and judge as in a run.

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

#include <nlohmann/json.hpp>

#include "actors/episode/completion_parser.hpp"
#include "actors/governance/judge.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/task_choice.hpp"
#include "launch/commands/verdict_text.hpp"
#include "launch/commands/workbench.hpp"
#include "launch/config/run_config.hpp"
#include "messages/digest.hpp"
#include "messages/fault.hpp"

namespace kernelmill::commands {

namespace {

constexpr size_t max_candidate_bytes = 256 << 10; // what a completion may hold in a run

expected<std::string> read_candidate(const std::string& path) {
  if (path == "-") {
    std::string text;
    char part[65536];
    for (ssize_t n;
         (n = ::read(0, part, sizeof part)) > 0 && text.size() <= max_candidate_bytes * 4;)
      text.append(part, static_cast<size_t>(n));
    return text;
  }
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    return configuration_error("missing_file", "failed to read " + path + ": no such file",
                               "name a source file, or - for stdin");
  std::ifstream file{path, std::ios::binary};
  if (!file || std::filesystem::is_directory(path, code))
    return configuration_error("missing_file",
                               "failed to read " + path + ": it is not a readable file",
                               "name a source file, or - for stdin");
  std::string text(max_candidate_bytes * 4, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

/// What the format gate sees of a plain source file: the rules of a completion without its tags.
parsed_completion as_source(std::string text) {
  parsed_completion result;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    result.problems.push_back("the file holds no code");
  if (text.size() > max_candidate_bytes)
    result.problems.push_back("the source is larger than 256 KiB");
  if (text.find('\0') != std::string::npos)
    result.problems.push_back("the source holds a NUL byte");
  if (!cli::is_utf8(text)) result.problems.push_back("the source is not UTF-8");
  result.ok = result.problems.empty();
  result.language = "cpp";
  if (result.ok) result.kernel = std::move(text);
  return result;
}

Message<wire::BuildResult> build_candidate(workbench& bench, const task& x,
                                           const parsed_completion& parsed,
                                           const std::string& sha256) {
  auto request = build<wire::BuildRequest>([&](wire::BuildRequest::Builder b) {
    b.setTask(x.id);
    b.setContract(x.contract);
    b.setBackend(bench.backend());
    b.setSource(parsed.kernel);
    b.setSha256(sha256);
    b.setDeadlineMs(compile_section{}.deadline_ms);
  });
  return bench.toolchain().build(*request.open());
}

expected<void> set_seed(wire::EvaluateRequest::Builder b, const std::string& hex) {
  if (hex.empty()) return {};
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    return configuration_error("usage", "failed to read --seed: it takes 64 lower-case hex digits",
                               "leave it out to draw one");
  auto data = b.initSeed(32);
  for (size_t i = 0; i < 32; ++i)
    data[i] = static_cast<kj::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return {};
}

expected<Message<wire::EvaluateResult>> evaluate_candidate(workbench& bench, const invocation& in,
                                                           const task& x,
                                                           wire::BuildResult::Reader built,
                                                           const std::string& sha256) {
  expected<void> seed;
  const timing_section timing;
  auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder b) {
    b.setTaskDir(x.directory);
    b.setTaskDigest(x.digest);
    b.setCandidateSha256(sha256);
    b.setLibraryPath(built.getLibraryPath());
    b.setLibrarySha256(built.getLibrarySha256());
    auto t = b.initTiming();
    t.setEnabled(!in.has("--no-timing"));
    t.setMinBlocks(timing.min_blocks);
    t.setMaxBlocks(timing.max_blocks);
    t.setHalfWidth(timing.half_width);
    t.setBudgetMs(timing.budget_ms);
    b.setDeadlineMs(evaluation_section{}.deadline_ms);
    seed = set_seed(b, in.value("--seed"));
  });
  if (!seed) return tl::unexpected<error>{seed.error()};
  auto referee = bench.referee();
  if (!referee) return tl::unexpected<error>{referee.error()};
  // The referee keeps the deadline of the request; ours only notices a referee that hangs.
  return (*referee)->evaluate(request, static_cast<int>(evaluation_section{}.deadline_ms) + 30'000);
}

void set_parsed(wire::ParsedCompletion::Builder b, const parsed_completion& x) {
  b.setOk(x.ok);
  b.setThought(x.thought);
  b.setKernel(x.kernel);
  b.setLanguage(x.language);
  b.setDiagnosis(x.diagnosis);
  auto list = b.initProblems(static_cast<unsigned>(x.problems.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, x.problems[i]);
}

/// Builds, evaluates and collects what the judge needs.
expected<Message<wire::TurnFacts>> establish(workbench& bench, const invocation& in, const task& x,
                                             const parsed_completion& parsed,
                                             const std::string& sha256) {
  Message<wire::BuildResult> built;
  Message<wire::EvaluateResult> evaluated;
  std::optional<error> fault;
  if (parsed.ok) built = build_candidate(bench, x, parsed, sha256);
  if (auto b = built.open(); parsed.ok && b->getCompiled()) {
    auto result = evaluate_candidate(bench, in, x, *b, sha256);
    if (!result && result.error().cls == fault_class::configuration)
      return tl::unexpected<error>{result.error()};
    if (result)
      evaluated = *result;
    else
      fault = result.error();
  }
  return build<wire::TurnFacts>([&](wire::TurnFacts::Builder b) {
    b.setTask(x.id);
    b.setVerb(x.verb);
    b.setOperatorFamily(x.operator_family);
    b.setBackend(bench.backend());
    b.setContract(x.contract);
    b.setCandidateSha256(sha256);
    set_parsed(b.initParsed(), parsed);
    b.setBuild(*built.open());
    b.setEvaluation(*evaluated.open());
    if (fault) set_fault(b.initFault(), *fault);
    // A source file carries no diagnosis; only one that was given can be wrong.
    b.setDiagnosisRight(parsed.diagnosis.empty() || parsed.diagnosis == x.diagnosis);
    b.setMaxTurns(1);
  });
}

expected<governance_config> rules(const std::string& preset) {
  auto weights = reward_preset(preset);
  if (!weights) return tl::unexpected<error>{weights.error()};
  governance_config result;
  result.preset = preset;
  result.reward = *weights;
  return result;
}

// The name of a file says what its author meant; where it does not, the machine decides.
expected<chosen_backend> backend_of(const invocation& in, const task& x) {
  auto wanted = in.value("--backend");
  auto file = in.value("FILE");
  bool for_gpu = std::find(x.backends.begin(), x.backends.end(), "cuda") != x.backends.end();
  bool host_code = file.ends_with(".cpp") || file.ends_with(".cc") || file.ends_with(".cxx");
  if (wanted == "auto" && file.ends_with(".cu")) wanted = "cuda";
  if (wanted == "auto" && in.value("--gpu").empty() && (host_code || !for_gpu)) wanted = "cpu";
  int only = -1;
  if (auto text = in.value("--gpu"); !text.empty()) {
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), only);
    if (problem != std::errc{} || end != text.data() + text.size() || only < 0)
      return configuration_error("usage", "failed to read --gpu: \"" + text + "\" is no number",
                                 "`kernelmill doctor` lists the GPUs, from 0 on");
  }
  return choose_backend(wanted, only);
}

void warn_of_missing_layers(const std::vector<sandbox_layer>& layers) {
  for (const auto& layer : layers)
    if (layer.state == layer_state::missing)
      cli::talk("warning: sandbox layer " + layer.name + " is missing: " + layer.detail +
                (layer.remedy.empty() ? "" : " (" + layer.remedy + ")"));
}

} // namespace

expected<int> eval(const invocation& in) {
  auto root = tasks_root(in);
  if (!root) return tl::unexpected<error>{root.error()};
  auto x = choose_task(*root, in.value("--task"));
  if (!x) return tl::unexpected<error>{x.error()};
  auto text = read_candidate(in.value("FILE"));
  if (!text) return tl::unexpected<error>{text.error()};
  auto config = rules(in.value("--preset"));
  if (!config) return tl::unexpected<error>{config.error()};
  auto parsed = in.has("--completion") ? parse_completion(*text) : as_source(*text);
  auto sha256 = sha256_hex(parsed.ok ? parsed.kernel : *text);
  auto backend = backend_of(in, *x);
  if (!backend) return tl::unexpected<error>{backend.error()};
  if (auto ok = choose_backend(*x, backend->name); !ok) return tl::unexpected<error>{ok.error()};
  auto bench = workbench::open(std::move(*backend));
  if (!bench) return tl::unexpected<error>{bench.error()};
  auto layers = bench->layers();
  warn_of_missing_layers(layers);
  auto facts = establish(*bench, in, *x, parsed, sha256);
  if (!facts) return tl::unexpected<error>{facts.error()};
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
  }
  return judged->getOutcome() == wire::Outcome::INFRASTRUCTURE ? cli::exit_failed : cli::exit_ok;
}

} // namespace kernelmill::commands

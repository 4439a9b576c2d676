#include "launch/judging/candidate_judging.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "actors/episode/prompt.hpp"
#include "actors/episode/unchanged.hpp"
#include "gpu/task/launch_plan.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/utf8.hpp"
#include "messages/fault.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

namespace {

constexpr size_t max_candidate_bytes = 256 << 10; // what a completion may hold in a run

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

// Whether this system or its machine is at fault, not the candidate.
bool is_ours(const expected<Message<wire::EvaluateResult>>& x) {
  return x ? is_to_be_repeated(*x->open()) : x.error().cls == fault_class::infrastructure;
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

} // namespace

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

judging_terms terms_of(const chosen_backend& backend, const torch_choice& choice) {
  return {backend.name,    contract_kind::native, choice.mode,
          choice.language, choice.float32,        hardware_text(backend)};
}

expected<task_ptr> on_contract(const task_ptr& what, const std::string& wanted,
                               const std::string& source) {
  // Here somebody says what this very candidate is; a run's configuration says it of many tasks.
  if (what->contract == contract_kind::torch) {
    if (wanted == "auto" || wanted == "torch") return what;
    return configuration_error("unsupported_contract",
                               "failed to use contract " + wanted + " for task " + what->id +
                                   ": its contract is torch",
                               "leave --contract out");
  }
  auto terms = what->terms;
  if (wanted == "auto") {
    bool device = terms.backend == "cuda" && has_launch_lines(source);
    terms.contract = device ? contract_kind::device : contract_kind::native;
  } else {
    auto contract = contract_of(wanted);
    KM_TRY(contract);
    terms.contract = *contract;
  }
  return on_terms(*what, std::move(terms));
}

parsed_completion as_source(std::string text, const task& what) {
  parsed_completion result;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    result.problems.push_back("the file holds no code");
  if (text.size() > max_candidate_bytes)
    result.problems.push_back("the source is larger than 256 KiB");
  if (text.find('\0') != std::string::npos)
    result.problems.push_back("the source holds a NUL byte");
  if (!is_utf8(text)) result.problems.push_back("the source is not UTF-8");
  result.ok = result.problems.empty();
  result.language = what.contract == contract_kind::torch ? "python"
                    : what.terms.backend == "cpu"         ? "cpp"
                                                          : what.terms.backend;
  result.diagnosis = what.diagnosis; // a source file carries none
  if (result.ok) result.kernel = std::move(text);
  return result;
}

Message<wire::BuildRequest> build_request_of(const offered_candidate& x) {
  return build<wire::BuildRequest>([&](wire::BuildRequest::Builder b) {
    b.setTask(x.what->id);
    b.setContract(to_string(x.what->contract));
    b.setBackend(x.what->terms.backend);
    b.setSource(x.parsed.kernel);
    b.setSha256(x.sha256);
    const compile_section defaults;
    b.setDeadlineMs(x.what->contract == contract_kind::torch ? defaults.torch_deadline_ms
                                                             : defaults.deadline_ms);
    if (x.what->contract == contract_kind::torch) b.setTaskDir(x.what->directory);
  });
}

Message<wire::BuildResult> build_candidate(native_toolchain& toolchain,
                                           const offered_candidate& x) {
  return toolchain.build(*build_request_of(x).open());
}

expected<Message<wire::EvaluateRequest>> evaluate_request_of(const judging_options& options,
                                                             const offered_candidate& x,
                                                             wire::BuildResult::Reader built) {
  const evaluation_section defaults;
  auto deadline_ms =
      x.what->contract == contract_kind::torch ? defaults.torch_deadline_ms : defaults.deadline_ms;
  expected<void> seed;
  auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder b) {
    b.setTaskDir(x.what->directory);
    b.setTaskDigest(x.what->digest);
    b.setTaskId(x.what->id);
    b.setCandidateSha256(x.sha256);
    b.setLibraryPath(built.getLibraryPath());
    b.setLibrarySha256(built.getLibrarySha256());
    b.setContract(to_string(x.what->contract));
    auto t = b.initTiming();
    t.setEnabled(options.timed);
    t.setMinBlocks(options.timing.min_blocks);
    t.setMaxBlocks(options.timing.max_blocks);
    t.setHalfWidth(options.timing.half_width);
    t.setClock(options.clock);
    t.setBudgetMs(options.timing.budget_ms);
    t.setWidest(options.timing.widest);
    if (x.what->contract == contract_kind::torch) {
      b.setMode(x.what->terms.mode);
      b.setLanguage(x.what->terms.language);
      b.setFloat32(x.what->terms.float32);
    }
    b.setDeadlineMs(deadline_ms);
    seed = set_seed(b, options.seed);
  });
  KM_TRY(seed);
  return request;
}

expected<Message<wire::EvaluateResult>> evaluate_candidate(referee_client& referee,
                                                           const judging_options& options,
                                                           const offered_candidate& x,
                                                           wire::BuildResult::Reader built) {
  auto request = evaluate_request_of(options, x, built);
  KM_TRY(request);
  auto deadline_ms = request->open()->getDeadlineMs();
  // The referee keeps the deadline of the request; ours only notices a referee that hangs.
  auto evaluate = [&] {
    return referee.evaluate(*request, static_cast<int>(deadline_ms) + 30'000);
  };
  auto result = evaluate();
  return is_ours(result) ? evaluate() : result;
}

Message<wire::TurnFacts> facts_of(const offered_candidate& x,
                                  const Message<wire::BuildResult>& built,
                                  const Message<wire::EvaluateResult>& evaluated,
                                  const std::optional<error>& fault) {
  return build<wire::TurnFacts>([&](wire::TurnFacts::Builder b) {
    b.setTask(x.what->id);
    b.setVerb(x.what->verb);
    b.setOperatorFamily(x.what->operator_family);
    b.setBackend(x.what->terms.backend);
    b.setContract(to_string(x.what->contract));
    b.setCandidateSha256(x.sha256);
    set_parsed(b.initParsed(), x.parsed);
    b.setBuild(*built.open());
    b.setEvaluation(*evaluated.open());
    if (fault) set_fault(b.initFault(), *fault);
    b.setDiagnosisRight(x.parsed.diagnosis.empty() || x.parsed.diagnosis == x.what->diagnosis);
    b.setMaxTurns(1);
    b.setUnchanged(copied_from(*x.what, task_prompt(*x.what, {}), x.parsed.kernel));
  });
}

expected<governance_config> governance_rules(const std::string& preset) {
  auto weights = reward_preset(preset);
  KM_TRY(weights);
  governance_config result;
  result.preset = preset;
  result.reward = *weights;
  return result;
}

} // namespace kernelmill

#include "launch/judging/candidate_judging.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include "actors/episode/prompt.hpp"
#include "actors/episode/turn_facts.hpp"
#include "actors/episode/verb_checks.hpp"
#include "gpu/task/launch_plan.hpp"
#include "launch/machine/timing_policy.hpp"
#include "launch/node/named_baseline.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/source_text.hpp"
#include "messages/base/utf8.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

namespace {

constexpr size_t max_candidate_bytes = 256 << 10; // what a completion may hold in a run

expected<std::vector<unsigned char>> seed_of(const std::string& hex) {
  std::vector<unsigned char> result;
  if (hex.empty()) return result;
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    return configuration_error("usage", "failed to read --seed: it takes 64 lower-case hex digits",
                               "leave it out to draw one");
  for (size_t i = 0; i < hex.size(); i += 2)
    result.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return result;
}

std::chrono::milliseconds deadline_of(const task& what, const auto& defaults) {
  bool takes_long =
      what.contract == contract_kind::torch || what.contract == contract_kind::program;
  return std::chrono::milliseconds{takes_long ? defaults.torch_deadline_ms : defaults.deadline_ms};
}

// Whether this system or its machine is at fault, not the candidate.
bool is_ours(const expected<Message<wire::EvaluateResult>>& x) {
  return x ? is_to_be_repeated(*x->open()) : x.error().cls == fault_class::infrastructure;
}

candidate_view view_of(const offered_candidate& x) {
  return {*x.what, x.parsed, x.sha256};
}

} // namespace

expected<std::string> read_candidate(const std::string& path) {
  if (path == "-") {
    std::string text;
    char part[65536];
    for (ssize_t n;
         (n = ::read(0, part, sizeof part)) > 0 && text.size() <= max_candidate_bytes * 4;)
      text.append(part, static_cast<size_t>(n));
    return normal_source(text);
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
  return normal_source(text);
}

judging_terms terms_of(const chosen_backend& backend, const torch_choice& choice) {
  return {backend.name,          contract_kind::native, choice.mode,
          choice.language,       choice.float32,        baseline_of_word(choice.baseline),
          hardware_text(backend)};
}

expected<task_ptr> on_contract(const task_ptr& what, const std::string& wanted,
                               const std::string& source) {
  // Here the caller names the contract of one candidate; a run's configuration does so for many
  // tasks.
  if (what->contract == contract_kind::torch || what->contract == contract_kind::program) {
    const std::string own = to_string(what->contract);
    if (wanted == "auto" || wanted == own) return what;
    return configuration_error("unsupported_contract",
                               "failed to use contract " + wanted + " for task " + what->id +
                                   ": its contract is " + own,
                               "leave --contract out");
  }
  auto terms = what->terms;
  if (wanted == "auto") {
    bool device = terms.backend != "cpu" && has_launch_lines(source);
    terms.contract = device ? contract_kind::device : contract_kind::native;
  } else {
    auto contract = contract_of(wanted);
    KM_TRY(contract);
    terms.contract = *contract;
  }
  return on_terms(*what, std::move(terms));
}

std::string answer_language(const task& what) {
  bool python =
      what.contract == contract_kind::torch ||
      (what.contract == contract_kind::program && what.program.answer_file.ends_with(".py"));
  return python ? "python" : what.terms.backend == "cpu" ? "cpp" : what.terms.backend;
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
  result.language = answer_language(what);
  result.diagnosis = what.diagnosis; // a source file carries none, and no evidence
  result.evidence = right_statements(what);
  if (result.ok) result.kernel = std::move(text);
  return result;
}

Message<wire::BuildRequest> build_request_of(const offered_candidate& x) {
  return build_request(view_of(x), deadline_of(*x.what, compile_section{}));
}

Message<wire::BuildResult> build_candidate(native_toolchain& toolchain,
                                           const offered_candidate& x) {
  return toolchain.build(*build_request_of(x).open());
}

expected<Message<wire::EvaluateRequest>> evaluate_request_of(const judging_options& options,
                                                             const offered_candidate& x,
                                                             wire::BuildResult::Reader built) {
  auto seed = seed_of(options.seed);
  KM_TRY(seed);
  auto section = options.timing;
  section.enabled = options.timed;
  auto timing = timing_policy(section, options.clock);
  return evaluation_request(view_of(x), built,
                            {*timing.open(), *seed, deadline_of(*x.what, evaluation_section{})});
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
                                  const std::optional<error>& fault,
                                  const Message<wire::ProfileResult>& profile) {
  static const error none{fault_class::none, {}, {}, {}};
  const shown_code shown{*x.what, prompt_of(x)};
  return build<wire::TurnFacts>([&](wire::TurnFacts::Builder out) {
    set_turn_facts(out, view_of(x), {built, evaluated, profile, fault ? *fault : none}, shown);
  });
}

std::string prompt_of(const offered_candidate& x) {
  return x.what->id.empty() ? std::string{} : task_prompt(*x.what, {});
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

#include "storage/export/rows/material.hpp"

#include <algorithm>
#include <cmath>

#include "messages/evidence.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"

namespace kernelmill::exports {

namespace {

std::string text_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

template <class Enum>
std::string word(Enum x) {
  return enum_name(capnp::DynamicEnum{std::move(x)});
}

std::optional<double> finite(double x) {
  return std::isfinite(x) ? std::optional<double>{x} : std::nullopt;
}

template <class T, class List>
std::vector<T> values(List list) {
  std::vector<T> result;
  result.reserve(list.size());
  for (auto x : list) result.push_back(x);
  return result;
}

stage_seconds seconds_of(wire::StageSeconds::Reader x) {
  return {x.getRetrieve(), x.getPolicy(),  x.getBuild(),
          x.getEvaluate(), x.getProfile(), x.getJudge()};
}

void read_evaluation(turn& to, wire::TurnFacts::Reader facts) {
  auto evaluation = facts.getEvaluation();
  to.format_ok = facts.getParsed().getOk();
  to.compiled = facts.getBuild().getCompiled();
  to.correct = evaluation.getCorrect();
  to.max_turns = facts.getMaxTurns();
  to.cases_total = evaluation.getCases().size();
  for (auto x : evaluation.getCases()) to.cases_passed += x.getPass();
  if (auto timing = evaluation.getTiming(); timing.getMeasured()) {
    to.candidate_ms = finite(timing.getCandidateMs());
    to.reference_ms = finite(timing.getReferenceMs());
  }
}

void read_tokens(turn& to, wire::Completion::Reader from) {
  to.prompt_tokens = from.getPromptTokens();
  to.completion_tokens = from.getCompletionTokens();
  to.prompt_ids = values<int32_t>(from.getPromptTokenIds());
  to.ids = values<int32_t>(from.getTokenIds());
  to.logprobs = values<float>(from.getLogprobs());
  for (auto x : from.getWeightVersions())
    to.versions.push_back({text_of(x.getVersion()), x.getStart(), x.getEnd()});
  to.audit = word(from.getAudit().getState());
}

void read_verdict(turn& to, wire::TurnRecord::Reader from) {
  auto verdict = from.getVerdict();
  to.outcome = verdict.getOutcome();
  to.category = text_of(verdict.getCategory());
  for (auto x : verdict.getFindings())
    to.findings.push_back({text_of(x.getRule()), word(x.getSeverity()), text_of(x.getEvidence())});
  if (is_paid(verdict)) to.reward = finite(verdict.getReward());
  for (auto x : verdict.getComponents())
    to.components.push_back({text_of(x.getName()), finite(x.getValue() * x.getWeight())});
  to.error = text_of(verdict.getFault().getMessage());
  auto timing = from.getFacts().getEvaluation().getTiming();
  if (auto x = timing.getSpeedup(); timing.getMeasured())
    to.faster = speedup{x.getEstimate(), x.getLow(), x.getHigh()};
}

/// Reads the texts of a group; a sibling's first prompt is read once.
class text_reader {
public:
  explicit text_reader(const artifact_store& artifacts) : artifacts_(artifacts) {}

  expected<std::string> operator()(wire::Content::Reader x) {
    if (!x.isArtifact()) return artifacts_.text(x);
    auto sha256 = text_of(x.getArtifact().getSha256());
    for (const auto& [known, text] : latest_)
      if (known == sha256) return text;
    auto text = artifacts_.text(x);
    if (!text) return text;
    latest_[next_++ % latest_.size()] = {std::move(sha256), *text};
    return text;
  }

private:
  const artifact_store& artifacts_;
  std::array<std::pair<std::string, std::string>, 8> latest_;
  size_t next_ = 0;
};

class reader {
public:
  reader(group& to, const artifact_store& artifacts) : to_(to), text_(artifacts) {}

  expected<void> read(const stored_episode& from, std::optional<double> advantage) {
    auto& x = to_.episodes.emplace_back();
    x.member = from.member;
    x.advantage = advantage;
    std::vector<message> told;
    for (const auto& record : from.turns) {
      auto view = record.open();
      if (auto ok = read_turn(x, view->getTurn(), told); !ok) return ok;
    }
    if (from.end) read_end(x, from.end->open()->getEpisode());
    return {};
  }

private:
  // `told` is what the turn before was answered with, and becomes that of this one.
  expected<void> read_turn(episode& to, wire::TurnRecord::Reader from, std::vector<message>& told) {
    if (to_.task.empty()) read_facts(from);
    auto& x = to.turns.emplace_back();
    x.number = from.getTurn();
    x.id = text_of(from.getTurnId());
    x.parent_id = text_of(from.getParentTurnId());
    // An imported conversation has it among its messages.
    if (to.turns.size() > 1) x.added = std::move(told);
    for (auto part : from.getPrompt()) {
      auto content = text_(part.getContent());
      KM_TRY(content);
      x.added.push_back({text_of(part.getRole()), std::move(*content)});
    }
    std::string feedback;
    for (auto [content, into] :
         {std::pair{from.getCompletion().getText(), &x.answer}, {from.getFeedback(), &feedback}}) {
      auto read = text_(content);
      KM_TRY(read);
      *into = std::move(*read);
    }
    auto code = candidate(from.getCandidate(), x.answer);
    KM_TRY(code);
    x.code = std::move(*code);
    x.code_sha256 = text_of(from.getCandidateSha256());
    if (auto ok = read_calls(x, from); !ok) return ok;
    x.called_natively = !x.calls.empty() && !from.getCompletion().getCallsAsText();
    told.clear();
    if (x.called_natively)
      for (const auto& done : x.calls) told.push_back({"tool", done.observation, {}, done.call.id});
    else if (!feedback.empty())
      told.push_back({"user", std::move(feedback), {}, {}});
    for (auto id : from.getExamples()) x.examples.push_back(text_of(id));
    x.finish_reason = text_of(from.getCompletion().getFinishReason());
    x.model = text_of(from.getCompletion().getModel());
    x.transition = text_of(from.getTransition());
    x.seconds = seconds_of(from.getSeconds());
    x.terminal = from.getTerminal();
    x.committed_at = from.getCommittedAt();
    x.evidence = evidence_score(evidence_parts_of(from));
    x.quality = to_string(quality_of(from));
    read_verdict(x, from);
    read_evaluation(x, from.getFacts());
    read_tokens(x, from.getCompletion());
    return {};
  }

  expected<void> read_calls(turn& to, wire::TurnRecord::Reader from) {
    for (auto call : from.getCalls()) {
      auto arguments = text_(call.getArguments());
      KM_TRY(arguments);
      auto observation = text_(call.getObservation());
      KM_TRY(observation);
      to.calls.push_back({{text_of(call.getId()), text_of(call.getTool()), std::move(*arguments)},
                          std::move(*observation),
                          text_of(call.getStatus()),
                          text_of(call.getTransition()),
                          text_of(call.getInput()),
                          text_of(call.getOutput()),
                          call.getSteps(),
                          call.getGpuSeconds()});
    }
    for (auto x : from.getCandidates()) {
      auto source = text_(x.getSource());
      KM_TRY(source);
      auto patch = text_(x.getPatch());
      KM_TRY(patch);
      to.candidates.push_back({text_of(x.getId()), text_of(x.getParent()), text_of(x.getSha256()),
                               std::move(*source), text_of(x.getRole()), text_of(x.getOrigin()),
                               std::move(*patch), text_of(x.getPatchKind())});
    }
    return {};
  }

  expected<std::string> candidate(wire::Content::Reader from, const std::string& answer) {
    if (!from.isOfCompletion()) return text_(from);
    auto part = part_of(answer, from.getOfCompletion());
    KM_TRY(part);
    return std::string{*part};
  }

  void read_facts(wire::TurnRecord::Reader from) {
    auto facts = from.getFacts();
    to_.task = text_of(from.getEpisode().getTask());
    to_.verb = text_of(facts.getVerb());
    to_.operator_family = text_of(facts.getOperatorFamily());
    to_.backend = text_of(facts.getBackend());
    to_.contract = text_of(facts.getContract());
  }

  static void read_end(episode& to, wire::EpisodeRecord::Reader from) {
    to.ended = true;
    to.outcome = word(from.getOutcome());
    to.stop_reason = text_of(from.getStopReason());
    to.terminal_state = text_of(from.getTerminalState());
    to.steps = from.getSteps();
    to.gpu_seconds = from.getGpuSeconds();
    to.governance = word(from.getReadiness().getKind());
    for (auto x : from.getReadiness().getReasons()) to.reasons.push_back(text_of(x));
    to.best_turn = from.getBestTurn();
    to.seconds = from.getSeconds();
    read_returns(to, from.getReturns());
  }

  // The record has 0 for the reward of a lost turn, so no return that has it in its sum counts.
  static void read_returns(episode& to, capnp::List<double>::Reader from) {
    for (auto x = to.turns.rbegin(); x != to.turns.rend() && !x->lost(); ++x)
      if (x->reward && x->number < from.size()) x->back = finite(from[x->number]);
  }

  group& to_;
  text_reader text_;
};

} // namespace

std::string name_of(const group& x) {
  return x.run + "/g" + std::to_string(x.number);
}

std::string name_of(const group& x, const episode& e) {
  return name_of(x) + ".e" + std::to_string(e.member);
}

std::string name_of(const group& x, const episode& e, const turn& t) {
  return name_of(x, e) + ".t" + std::to_string(t.number);
}

void share_first(group& x, uint32_t turns) {
  for (auto& e : x.episodes)
    for (auto& t : e.turns)
      if (t.number < turns) {
        t.shared = true;
        t.reward = t.back = std::nullopt;
      }
}

size_t first_own(const episode& x) {
  size_t result = 0;
  while (result < x.turns.size() && x.turns[result].shared) ++result;
  return result;
}

message answer_of(const turn& x) {
  message result{"assistant", x.answer, {}, {}};
  if (x.called_natively)
    for (const auto& done : x.calls) result.calls.push_back(done.call);
  return result;
}

bool has_transition(const turn& x, const std::set<std::string>& kinds) {
  return kinds.contains(x.transition) ||
         std::any_of(x.calls.begin(), x.calls.end(),
                     [&](const done_call& y) { return kinds.contains(y.transition); });
}

bool bears_patch(const turn& x) {
  return has_transition(x, {"patch_applied"}) ||
         std::any_of(x.candidates.begin(), x.candidates.end(),
                     [](const made_candidate& y) { return y.origin == "patch"; });
}

std::vector<message> conversation(const episode& x, size_t end) {
  std::vector<message> result;
  for (size_t i = 0; i <= end; ++i) {
    const auto& turn = x.turns[i];
    result.insert(result.end(), turn.added.begin(), turn.added.end());
    if (i < end) result.push_back(answer_of(turn));
  }
  return result;
}

expected<group> read_material(const admitted_group& admitted, const artifact_store& artifacts,
                              const std::string& run) {
  const auto& from = *admitted;
  group result;
  result.run = run;
  result.number = from.group;
  std::vector<std::optional<double>> advantages;
  if (from.end) {
    auto view = from.end->open();
    auto end = view->getGroup();
    result.ended = true;
    result.mean = finite(end.getMean());
    result.deviation = finite(end.getDeviation());
    for (auto x : end.getAdvantages()) advantages.push_back(finite(x));
  }
  reader read{result, artifacts};
  for (const auto& x : from.episodes)
    if (auto ok = read.read(x, x.member < advantages.size() ? advantages[x.member] : std::nullopt);
        !ok)
      return tl::unexpected<error>{ok.error()};
  return result;
}

} // namespace kernelmill::exports

#include "storage/journal/projections.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "messages/base/json_value.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"
#include "storage/files.hpp"
#include "storage/journal/tool_lines.hpp"
#include "storage/json_values.hpp"
#include "storage/token_json.hpp"

namespace kernelmill {

using nlohmann::ordered_json;

namespace {

// JSON knows neither NaN nor infinity.
ordered_json numbers(capnp::List<double>::Reader xs) {
  auto result = ordered_json::array();
  for (auto x : xs) result.push_back(number(x));
  return result;
}

template <class Enum>
std::string word(Enum x) {
  return enum_name(capnp::DynamicEnum{std::move(x)});
}

// Cap'n Proto's iterators have no iterator_category, so no algorithm of <algorithm> takes them.
bool cheated(wire::TurnRecord::Reader turn) {
  for (auto x : turn.getVerdict().getFindings())
    if (x.getSeverity() == wire::Severity::CRITICAL) return true;
  return false;
}

ordered_json reward_of(wire::TurnRecord::Reader turn) {
  return is_paid(turn.getVerdict()) ? number(turn.getVerdict().getReward()) : nullptr;
}

uint32_t passed(capnp::List<wire::CaseResult>::Reader cases) {
  uint32_t count = 0;
  for (auto x : cases) count += x.getPass();
  return count;
}

ordered_json evaluation_json(wire::TurnRecord::Reader turn) {
  auto facts = turn.getFacts();
  auto evaluation = facts.getEvaluation();
  auto timing = evaluation.getTiming();
  auto cases = evaluation.getCases();
  ordered_json result;
  result["format_ok"] = facts.getParsed().getOk();
  result["compiled"] = facts.getBuild().getCompiled();
  result["correct"] = evaluation.getCorrect();
  result["cheated"] = cheated(turn);
  result["outcome"] = word(turn.getVerdict().getOutcome());
  result["category"] = text_of(turn.getVerdict().getCategory());
  result["error"] = text_of(turn.getVerdict().getFault().getMessage());
  result["cases_passed"] = passed(cases);
  result["cases_total"] = cases.size();
  if (timing.getMeasured()) {
    result["candidate_ms"] = number(timing.getCandidateMs());
    result["reference_ms"] = number(timing.getReferenceMs());
    auto speedup = timing.getSpeedup();
    result["speedup"] = {{"estimate", number(speedup.getEstimate())},
                         {"low", number(speedup.getLow())},
                         {"high", number(speedup.getHigh())}};
    if (timing.getBaseline().size() > 0) result["baseline"] = text_of(timing.getBaseline());
    if (auto eager = eager_speedup(timing)) result["eager_speedup"] = number(*eager);
  } else if (timing.getNotTimed() != wire::NotTimed::NO) {
    result["not_timed"] = {{"by", word(timing.getNotTimed())}, {"why", text_of(timing.getNote())}};
  }
  auto& layers = result["sandbox_layers"] = ordered_json::array();
  for (auto x : evaluation.getLayers()) layers.push_back(text_of(x));
  auto& findings = result["findings"] = ordered_json::array();
  for (auto x : turn.getVerdict().getFindings())
    findings.push_back({{"rule", text_of(x.getRule())},
                        {"severity", word(x.getSeverity())},
                        {"evidence", text_of(x.getEvidence())}});
  auto& gates = result["gates"] = ordered_json::array();
  for (auto x : turn.getVerdict().getGates())
    gates.push_back({{"name", text_of(x.getName())},
                     {"status", word(x.getStatus())},
                     {"reason", text_of(x.getReason())}});
  return result;
}

ordered_json stage_json(wire::StageSeconds::Reader x) {
  return {{"time/retrieve", number(x.getRetrieve())}, {"time/policy", number(x.getPolicy())},
          {"time/build", number(x.getBuild())},       {"time/eval", number(x.getEvaluate())},
          {"time/profile", number(x.getProfile())},   {"time/judge", number(x.getJudge())}};
}

// Only where a server told ids: there is nothing to say of texts.
void add_tokens(ordered_json& to, wire::Completion::Reader x) {
  if (x.getWeightVersions().size() > 0) to["weight_versions"] = weight_versions_json(x);
  if (x.getPromptTokenIds().size() == 0 && x.getTokenIds().size() == 0) return;
  auto& tokens = to["tokens"];
  tokens = token_audit_json(x);
  add_token_lists(tokens, x);
}

// What a line begins with: what it is, of which moment, and of what.
ordered_json line_of(const char* kind, double at) {
  return {{"schema_version", line_schema_version}, {"kind", kind}, {"timestamp", number(at)}};
}

void add_names(ordered_json& to, wire::EpisodeRef::Reader where) {
  to["run"] = text_of(where.getRun());
  to["task"] = text_of(where.getTask());
  to["group"] = where.getGroup();
  to["member"] = where.getMember();
  to["episode"] = short_name({{}, {}, where.getGroup(), where.getMember()});
}

ordered_json turn_line(wire::TurnRecord::Reader turn) {
  auto result = line_of("turn", turn.getCommittedAt());
  result["turn_id"] = text_of(turn.getTurnId());
  add_names(result, turn.getEpisode());
  result["turn"] = turn.getTurn();
  return result;
}

// -- metrics ------------------------------------------------------------------------------------

struct series {
  void add(double x) {
    if (std::isfinite(x)) values.push_back(x);
  }
  double mean() const {
    double sum = 0;
    for (auto x : values) sum += x;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  }
  double deviation() const {
    double sum = 0, middle = mean();
    for (auto x : values) sum += (x - middle) * (x - middle);
    return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
  }
  double max() const {
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  }
  double min() const {
    return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
  }

  std::vector<double> values;
};

struct tally {
  series reward, format, compile, correct, cheat, speedup, eval_seconds;
  std::map<std::string, series> parts; // of turns with a reward
  uint64_t infrastructure = 0, not_timed = 0, open = 0;

  void add(wire::TurnRecord::Reader turn) {
    if (turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE) {
      ++infrastructure;
      return;
    }
    if (turn.getVerdict().getOutcome() == wire::Outcome::OPEN) { // no verdict was asked for
      ++open;
      return;
    }
    auto facts = turn.getFacts();
    if (is_paid(turn.getVerdict())) {
      reward.add(turn.getVerdict().getReward());
      for (auto x : turn.getVerdict().getComponents())
        parts[x.getName().cStr()].add(x.getValue() * x.getWeight());
    }
    format.add(facts.getParsed().getOk());
    compile.add(facts.getBuild().getCompiled());
    correct.add(facts.getEvaluation().getCorrect());
    cheat.add(cheated(turn));
    eval_seconds.add(turn.getSeconds().getEvaluate());
    if (facts.getEvaluation().getTiming().getMeasured())
      speedup.add(facts.getEvaluation().getTiming().getSpeedup().getLow());
    not_timed += turn.getVerdict().getCategory() == "not_timed";
  }
};

struct episode_tally {
  series success, turns, correct_turns, best_speedup, seconds;

  void add(const stored_episode& episode) {
    if (!episode.end) return;
    auto end = episode.end->open();
    if (end->getEpisode().getOutcome() == wire::Outcome::INFRASTRUCTURE) return;
    success.add(end->getEpisode().getOutcome() == wire::Outcome::ACCEPTED);
    turns.add(end->getEpisode().getTurns());
    seconds.add(end->getEpisode().getSeconds());
    if (end->getEpisode().getBestSpeedup() > 0)
      best_speedup.add(end->getEpisode().getBestSpeedup());
    double correct = 0;
    for (const auto& turn : episode.turns)
      correct += turn.open()->getTurn().getFacts().getEvaluation().getCorrect();
    correct_turns.add(correct);
  }
};

series advantages_of(wire::GroupRecord::Reader end) {
  series result;
  for (auto value : end.getAdvantages()) result.add(value);
  return result;
}

std::string task_of(const stored_group& group) {
  if (group.end) return group.end->open()->getGroup().getTask().cStr();
  for (const auto& episode : group.episodes)
    for (const auto& turn : episode.turns)
      return turn.open()->getTurn().getEpisode().getTask().cStr();
  return {};
}

} // namespace

std::string thought_in(const std::string& text) {
  auto begin = text.find("<think>");
  auto end = text.find("</think>");
  if (begin == text.npos || end == text.npos || end < begin) return {};
  begin += 7;
  return text.substr(begin, end - begin);
}

expected<ordered_json> turn_trace(wire::TurnRecord::Reader turn, const artifact_store& artifacts) {
  auto result = turn_line(turn);
  auto facts = turn.getFacts();
  result["verb"] = text_of(facts.getVerb());
  result["backend"] = text_of(facts.getBackend());
  result["operator_family"] = text_of(facts.getOperatorFamily());
  result["contract"] = text_of(facts.getContract());
  result["max_turns"] = facts.getMaxTurns();
  auto& messages = result["prompt_messages"] = ordered_json::array();
  for (auto part : turn.getPrompt()) {
    auto content = artifacts.text(part.getContent());
    KM_TRY(content);
    messages.push_back({{"role", text_of(part.getRole())}, {"content", *content}});
  }
  auto& examples = result["examples"] = ordered_json::array();
  for (auto id : turn.getExamples()) examples.push_back(text_of(id));
  auto raw = artifacts.text(turn.getCompletion().getText());
  KM_TRY(raw);
  auto kernel = artifacts.candidate(turn);
  KM_TRY(kernel);
  auto feedback = artifacts.text(turn.getFeedback());
  KM_TRY(feedback);
  auto completion = turn.getCompletion();
  result["response"] = {{"raw", *raw},
                        {"thought", thought_in(*raw)},
                        {"kernel", *kernel},
                        {"format_ok", facts.getParsed().getOk()},
                        {"language", text_of(facts.getParsed().getLanguage())},
                        {"finish_reason", text_of(completion.getFinishReason())}};
  result["transition"] = text_of(turn.getTransition());
  result["model"] = text_of(completion.getModel());
  result["usage"] = {{"prompt_tokens", completion.getPromptTokens()},
                     {"completion_tokens", completion.getCompletionTokens()}};
  add_tokens(result, completion);
  result["eval_result"] = evaluation_json(turn);
  result["reward"] = reward_of(turn);
  auto& parts = result["reward_breakdown"] = ordered_json::object();
  for (auto x : turn.getVerdict().getComponents())
    parts[x.getName().cStr()] = number(x.getValue() * x.getWeight());
  result["metrics"] = stage_json(turn.getSeconds());
  result["feedback"] = *feedback;
  result["started_at"] = number(turn.getStartedAt());
  if (turn.getTerminal()) result["stop_condition"] = text_of(turn.getStopReason());
  KM_TRY(add_tool_parts(result, turn, artifacts));
  return result;
}

ordered_json episode_trace(wire::EpisodeRecord::Reader end) {
  auto result = line_of("episode", end.getCommittedAt());
  add_names(result, end.getEpisode());
  result["outcome"] = word(end.getOutcome());
  result["stop_condition"] = text_of(end.getStopReason());
  result["best_turn"] = end.getBestTurn();
  result["best_speedup"] = number(end.getBestSpeedup());
  result["rewards"] = numbers(end.getRewards());
  result["returns"] = numbers(end.getReturns());
  result["state"] = {{"turn_idx", end.getTurns()},
                     {"done", true},
                     {"success", end.getOutcome() == wire::Outcome::ACCEPTED},
                     {"step_scores", numbers(end.getRewards())}};
  auto reasons = ordered_json::array();
  for (auto x : end.getReadiness().getReasons()) reasons.push_back(text_of(x));
  result["readiness"] = {{"kind", word(end.getReadiness().getKind())}, {"reasons", reasons}};
  result["not_timed"] = end.getNotTimed();
  result["seconds"] = number(end.getSeconds());
  add_tool_end(result, end);
  return result;
}

ordered_json turn_metrics(wire::TurnRecord::Reader turn) {
  auto result = turn_line(turn);
  result["step"] = turn.getEpisode().getGroup();
  auto evaluation = turn.getFacts().getEvaluation();
  result["outcome"] = word(turn.getVerdict().getOutcome());
  result["category"] = text_of(turn.getVerdict().getCategory());
  result["reward"] = reward_of(turn);
  result["kernel/format"] = turn.getFacts().getParsed().getOk();
  result["kernel/compiled"] = turn.getFacts().getBuild().getCompiled();
  result["kernel/correct"] = evaluation.getCorrect();
  result["kernel/cheated"] = cheated(turn);
  auto timing = evaluation.getTiming();
  result["kernel/speedup"] = timing.getMeasured() ? number(timing.getSpeedup().getLow()) : nullptr;
  result["tokens/prompt"] = turn.getCompletion().getPromptTokens();
  result["tokens/completion"] = turn.getCompletion().getCompletionTokens();
  result.update(stage_json(turn.getSeconds()));
  return result;
}

ordered_json group_metrics(const stored_group& group) {
  tally all;
  std::map<uint32_t, tally> by_turn;
  episode_tally episodes;
  for (const auto& episode : group.episodes) {
    episodes.add(episode);
    for (const auto& turn : episode.turns) {
      auto view = turn.open();
      all.add(view->getTurn());
      by_turn[view->getTurn().getTurn()].add(view->getTurn());
    }
  }
  auto x = line_of("group", group.end ? group.end->open()->getGroup().getCommittedAt() : 0);
  x.update({{"step", group.group},
            {"task", task_of(group)},
            {"episodes", group.episodes.size()},
            {"turns", all.format.values.size() + all.open},
            {"open_turns", all.open},
            {"infrastructure_turns", all.infrastructure},
            {"not_timed_turns", all.not_timed},
            {"reward/mean", all.reward.mean()},
            {"reward/std", all.reward.deviation()},
            {"reward/min", all.reward.min()},
            {"reward/max", all.reward.max()}});
  if (group.end) {
    auto end = group.end->open();
    x["return/mean"] = number(end->getGroup().getMean());
    x["return/std"] = number(end->getGroup().getDeviation());
    auto advantages = advantages_of(end->getGroup());
    x["advantage/mean"] = advantages.mean();
    x["advantage/std"] = advantages.deviation();
    x["advantage/min"] = advantages.min();
    x["advantage/max"] = advantages.max();
  }
  for (const auto& [name, values] : all.parts) x["reward_components/" + name] = values.mean();
  x["kernel/format_rate"] = all.format.mean();
  x["kernel/compile_rate"] = all.compile.mean();
  x["kernel/correct_rate"] = all.correct.mean();
  x["kernel/cheat_rate"] = all.cheat.mean();
  x["kernel/mean_speedup"] = all.speedup.mean();
  x["multiturn/success_rate"] = episodes.success.mean();
  x["multiturn/avg_turns"] = episodes.turns.mean();
  x["multiturn/max_correct_per_trajectory"] = episodes.correct_turns.max();
  x["multiturn/best_speedup_mean"] = episodes.best_speedup.mean();
  for (const auto& [turn, values] : by_turn) {
    auto prefix = "multiturn/turn_" + std::to_string(turn) + "/";
    x[prefix + "compile_rate"] = values.compile.mean();
    x[prefix + "correct_rate"] = values.correct.mean();
  }
  x["time/eval_mean"] = all.eval_seconds.mean();
  x["time/eval_max"] = all.eval_seconds.max();
  x["time/step_mean"] = episodes.seconds.mean();
  x["time/step_max"] = episodes.seconds.max();
  return x;
}

group_values values_of(const stored_group& group) {
  tally all;
  for (const auto& episode : group.episodes)
    for (const auto& turn : episode.turns) all.add(turn.open()->getTurn());
  series advantages;
  if (group.end) advantages = advantages_of(group.end->open()->getGroup());
  return {{"reward", std::move(all.reward.values)},
          {"speedup", std::move(all.speedup.values)},
          {"advantage", std::move(advantages.values)}};
}

} // namespace kernelmill

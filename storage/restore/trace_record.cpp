#include "storage/restore/trace_record.hpp"

#include <stdexcept>

#include "messages/base/digest.hpp"
#include "messages/identity.hpp"
#include "storage/restore/line_values.hpp"
#include "storage/restore/tool_lines.hpp"

namespace kernelmill {

namespace {

using namespace line_values;

constexpr uint32_t most_cases = 10'000; // a line may say anything, and each takes 64 bytes

episode_id read_names(wire::EpisodeRef::Builder to, const json& line) {
  episode_id id{text(line, "run"), text(line, "task"), whole(line, "group"), whole(line, "member")};
  if (text(line, "episode") != short_name(id))
    throw std::invalid_argument{"'episode' is not that of 'group' and 'member'"};
  to.setRun(id.run);
  to.setTask(id.task);
  to.setGroup(id.group);
  to.setMember(id.member);
  return id;
}

template <class List>
void read_numbers(List to, const json& from, const char* key) {
  for (uint32_t i = 0; i < to.size(); ++i) to.set(i, fitting<int32_t>(from[i], key));
}

void read_tokens(wire::Completion::Builder to, const json& from) {
  auto audit = to.initAudit();
  audit.setState(value_of<wire::TokenState>(text(from, "audit")));
  audit.setKept(whole(from, "kept"));
  audit.setPosition(whole(from, "position"));
  to.setRoute(text(from, "route"));
  auto count = [&](const char* key) {
    return from.contains(key) ? static_cast<uint32_t>(from[key].size()) : 0;
  };
  if (auto n = count("prompt_token_ids"))
    read_numbers(to.initPromptTokenIds(n), from["prompt_token_ids"], "prompt_token_ids");
  if (auto n = count("token_ids")) read_numbers(to.initTokenIds(n), from["token_ids"], "token_ids");
  auto n = count("logprobs");
  if (n == 0) return;
  auto logprobs = to.initLogprobs(n);
  for (uint32_t i = 0; i < n; ++i) logprobs.set(i, static_cast<float>(real(from["logprobs"][i])));
}

void read_completion(wire::Completion::Builder to, const json& line, long_texts& texts) {
  const auto& response = line.at("response");
  texts.put(to.initText(), text(response, "raw"));
  to.setFinishReason(text_if(response, "finish_reason"));
  to.setModel(text(line, "model"));
  if (line.contains("usage")) {
    to.setPromptTokens(whole(line["usage"], "prompt_tokens"));
    to.setCompletionTokens(whole(line["usage"], "completion_tokens"));
  }
  if (line.contains("tokens")) read_tokens(to, line["tokens"]);
  if (!line.contains("weight_versions")) return;
  const auto& versions = line["weight_versions"];
  auto spans = to.initWeightVersions(static_cast<uint32_t>(versions.size()));
  for (uint32_t i = 0; i < spans.size(); ++i) {
    spans[i].setVersion(text(versions[i], "version"));
    spans[i].setStart(whole(versions[i], "start"));
    spans[i].setEnd(whole(versions[i], "end"));
  }
}

void read_timing(wire::Timing::Builder to, const json& result) {
  if (result.contains("speedup")) {
    to.setMeasured(true);
    to.setCandidateMs(real(result.at("candidate_ms")));
    to.setReferenceMs(real(result.at("reference_ms")));
    auto speedup = to.initSpeedup();
    speedup.setEstimate(real(result["speedup"].at("estimate")));
    speedup.setLow(real(result["speedup"].at("low")));
    speedup.setHigh(real(result["speedup"].at("high")));
  } else if (result.contains("not_timed")) {
    to.setNotTimed(value_of<wire::NotTimed>(text(result["not_timed"], "by")));
    to.setNote(text(result["not_timed"], "why"));
  }
}

// Of the cases a line has the numbers of those that ran and that passed.
void read_evaluation(wire::EvaluateResult::Builder to, const json& result) {
  to.setCorrect(result.at("correct").get<bool>());
  auto total = whole(result, "cases_total");
  auto passed = whole(result, "cases_passed");
  if (total > most_cases || passed > total)
    throw std::invalid_argument{"'cases_passed' and 'cases_total' cannot be"};
  auto cases = to.initCases(total);
  for (uint32_t i = 0; i < passed; ++i) cases[i].setPass(true);
  read_timing(to.initTiming(), result);
  const auto& names = result.at("sandbox_layers");
  auto layers = to.initLayers(static_cast<uint32_t>(names.size()));
  for (uint32_t i = 0; i < layers.size(); ++i) layers.set(i, names[i].get<std::string>());
}

void read_facts(wire::TurnFacts::Builder to, const json& line) {
  const auto& response = line.at("response");
  const auto& result = line.at("eval_result");
  to.setTask(text(line, "task"));
  to.setVerb(name_in(text(line, "verb")));
  to.setOperatorFamily(name_in(text(line, "operator_family")));
  to.setBackend(name_in(text(line, "backend")));
  to.setContract(name_in(text_if(line, "contract")));
  to.setTurn(whole(line, "turn"));
  to.setMaxTurns(whole(line, "max_turns"));
  to.initParsed().setOk(response.at("format_ok").get<bool>());
  to.getParsed().setLanguage(text_if(response, "language"));
  to.initBuild().setCompiled(result.at("compiled").get<bool>());
  read_evaluation(to.initEvaluation(), result);
}

wire::FaultClass blamed(wire::Verdict::Reader verdict) {
  if (verdict.getOutcome() == wire::Outcome::INFRASTRUCTURE)
    return wire::FaultClass::INFRASTRUCTURE;
  return verdict.getCategory() == "format_error" ? wire::FaultClass::POLICY
                                                 : wire::FaultClass::CANDIDATE;
}

void read_findings(wire::Verdict::Builder to, const json& from) {
  bool marked = false;
  for (const auto& x : from) marked |= text(x, "rule") == restored_rule;
  auto findings = to.initFindings(static_cast<uint32_t>(from.size()) + (marked ? 0 : 1));
  for (uint32_t i = 0; i < from.size(); ++i) {
    findings[i].setRule(name_in(text(from[i], "rule")));
    findings[i].setSeverity(value_of<wire::Severity>(text(from[i], "severity")));
    findings[i].setEvidence(text(from[i], "evidence"));
  }
  if (marked) return;
  auto mark = findings[findings.size() - 1];
  mark.setRule(restored_rule);
  mark.setSeverity(wire::Severity::INFO);
  mark.setEvidence(std::string{"made from traces.jsonl, which does not say: "} + not_in_traces);
}

// A component is told with its weight in it.
void read_verdict(wire::Verdict::Builder to, const json& line) {
  const auto& result = line.at("eval_result");
  to.setOutcome(value_of<wire::Outcome>(text(result, "outcome")));
  to.setCategory(name_in(text(result, "category")));
  if (auto message = text(result, "error"); !message.empty()) {
    auto fault = to.initFault();
    fault.setClass(blamed(to));
    fault.setCategory(to.getCategory());
    fault.setMessage(message);
  }
  to.setReward(real(line.at("reward")));
  to.setUnpaid(line["reward"].is_null() && to.getOutcome() != wire::Outcome::INFRASTRUCTURE);
  const auto& parts = line.at("reward_breakdown");
  auto components = to.initComponents(static_cast<uint32_t>(parts.size()));
  uint32_t next = 0;
  for (const auto& [name, value] : parts.items()) {
    components[next].setName(name_in(name));
    components[next].setValue(real(value));
    components[next++].setWeight(1);
  }
  read_findings(to, result.at("findings"));
  if (!result.contains("gates")) return;
  const auto& gates = result["gates"];
  auto list = to.initGates(static_cast<uint32_t>(gates.size()));
  for (uint32_t i = 0; i < list.size(); ++i) {
    list[i].setName(name_in(text(gates[i], "name")));
    list[i].setStatus(value_of<wire::GateStatus>(text(gates[i], "status")));
    list[i].setReason(text(gates[i], "reason"));
  }
}

void read_seconds(wire::StageSeconds::Builder to, const json& from) {
  to.setRetrieve(real(from.at("time/retrieve")));
  to.setPolicy(real(from.at("time/policy")));
  to.setBuild(real(from.at("time/build")));
  to.setEvaluate(real(from.at("time/eval")));
  to.setProfile(real(from.at("time/profile")));
  to.setJudge(real(from.at("time/judge")));
}

void read_turn(wire::TurnRecord::Builder to, const json& line, long_texts& texts) {
  auto id = read_names(to.initEpisode(), line);
  auto number = whole(line, "turn");
  to.setTurnId(turn_id(id, number));
  if (text(line, "turn_id") != turn_id(id, number))
    throw std::invalid_argument{"'turn_id' is not that of its run, task, episode and turn"};
  to.setTurn(number);
  if (number > 0) to.setParentTurnId(turn_id(id, number - 1));
  to.setTransition(name_in(text_if(line, "transition")));
  const auto& messages = line.at("prompt_messages");
  auto prompt = to.initPrompt(static_cast<uint32_t>(messages.size()));
  for (uint32_t i = 0; i < prompt.size(); ++i) {
    prompt[i].setRole(name_in(text(messages[i], "role")));
    texts.put(prompt[i].initContent(), text(messages[i], "content"));
  }
  read_completion(to.initCompletion(), line, texts);
  auto kernel = text(line.at("response"), "kernel");
  texts.put(to.initCandidate(), kernel);
  read_facts(to.initFacts(), line);
  if (!kernel.empty()) {
    to.setCandidateSha256(sha256_hex(kernel));
    to.getFacts().setCandidateSha256(to.getCandidateSha256());
  }
  read_verdict(to.initVerdict(), line);
  texts.put(to.initFeedback(), text(line, "feedback"));
  to.setStopReason(name_in(text_if(line, "stop_condition")));
  to.setTerminal(line.contains("stop_condition"));
  read_seconds(to.initSeconds(), line.at("metrics"));
  to.setStartedAt(real(line.at("started_at")));
  to.setCommittedAt(real(line.at("timestamp")));
  read_tool_parts(to, line, texts);
  if (!line.contains("examples")) return;
  auto examples = to.initExamples(static_cast<uint32_t>(line["examples"].size()));
  for (uint32_t i = 0; i < examples.size(); ++i)
    examples.set(i, line["examples"][i].get<std::string>());
}

void read_episode(wire::EpisodeRecord::Builder to, const json& line) {
  read_names(to.initEpisode(), line);
  auto count = whole(line.at("state"), "turn_idx");
  const auto& rewards = line.at("rewards");
  const auto& returns = line.at("returns");
  if (rewards.size() != count || returns.size() != count)
    throw std::invalid_argument{"'rewards' and 'returns' are not as many as 'turn_idx' says"};
  to.setTurns(count);
  to.setStopReason(name_in(text(line, "stop_condition")));
  to.setOutcome(value_of<wire::Outcome>(text(line, "outcome")));
  to.setBestTurn(whole(line, "best_turn"));
  if (count > 0 && to.getBestTurn() >= count)
    throw std::invalid_argument{"'best_turn' is none of its turns"};
  auto paid = to.initRewards(count), credited = to.initReturns(count);
  for (uint32_t i = 0; i < count; ++i) {
    paid.set(i, real(rewards[i]));
    credited.set(i, real(returns[i]));
  }
  to.setBestSpeedup(real(line.at("best_speedup")));
  const auto& said = line.at("readiness");
  auto readiness = to.initReadiness();
  readiness.setKind(value_of<wire::EpisodeKind>(text(said, "kind")));
  auto reasons = readiness.initReasons(static_cast<uint32_t>(said.at("reasons").size()));
  for (uint32_t i = 0; i < reasons.size(); ++i)
    reasons.set(i, said["reasons"][i].get<std::string>());
  to.setSeconds(real(line.at("seconds")));
  to.setNotTimed(whole(line, "not_timed"));
  read_tool_end(to, line);
  to.setCommittedAt(real(line.at("timestamp")));
}

} // namespace

void long_texts::put(wire::Content::Builder into, const std::string& text) {
  if (text.size() <= inline_content_bytes) {
    into.setInline(capnp::Text::Reader(text.c_str(), text.size()));
    return;
  }
  auto& kept = entries_.emplace_back(entry{sha256_hex(text), text});
  auto ref = into.initArtifact();
  ref.setSha256(kept.sha256);
  ref.setSize(text.size());
}

void long_texts::take(long_texts&& other) {
  for (auto& x : other.entries_) entries_.push_back(std::move(x));
}

expected<void> long_texts::store(artifact_store& into) {
  std::vector<artifact> batch;
  for (const auto& x : entries_) batch.push_back({x.sha256, x.text});
  KM_TRY(into.put_all(batch));
  entries_.clear();
  return {};
}

Message<wire::Record> restored_turn(const json& line, long_texts& texts) {
  return build<wire::Record>(
      [&](wire::Record::Builder record) { read_turn(record.initTurn(), line, texts); });
}

Message<wire::Record> restored_episode(const json& line) {
  return build<wire::Record>(
      [&](wire::Record::Builder record) { read_episode(record.initEpisode(), line); });
}

} // namespace kernelmill

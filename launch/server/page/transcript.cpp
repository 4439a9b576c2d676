// One episode turn by turn. Texts are a model's: they go out as JSON strings, bytes that are not
// UTF-8 replaced, and the page shows them as text.

#include <fmt/format.h>

#include "launch/analysis/watch/candidates.hpp"
#include "launch/analysis/watch/stage_times.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "launch/server/page/documents.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"
#include "messages/json.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::page {

namespace {

/// {"text", "bytes", "cut"}: the beginning of a text, cut between two characters.
json shown(const std::string& text) {
  if (text.size() <= shown_bytes) return {{"text", text}, {"bytes", text.size()}, {"cut", false}};
  return {{"text", utf8_prefix(text, shown_bytes)}, {"bytes", text.size()}, {"cut", true}};
}

std::string content(const expected<std::string>& text) {
  return text ? *text : "(" + text.error().message + ")";
}

json quantities(capnp::List<wire::Quantity>::Reader all) {
  auto result = json::array();
  for (auto x : all)
    result.push_back({{"name", std::string{x.getName()}},
                      {"value", x.getValue()},
                      {"unit", std::string{x.getUnit()}}});
  return result;
}

json texts(capnp::List<capnp::Text>::Reader all) {
  auto result = json::array();
  for (auto x : all) result.push_back(std::string{x});
  return result;
}

json build_of(wire::BuildResult::Reader x) {
  json result = {{"compiled", x.getCompiled()},     {"cached", x.getCached()},
                 {"seconds", x.getSeconds()},       {"toolchain", std::string{x.getToolchain()}},
                 {"log", shown(x.getLog().cStr())}, {"diagnostics", json::array()}};
  for (auto d : x.getDiagnostics())
    result["diagnostics"].push_back({{"file", std::string{d.getFile()}},
                                     {"line", d.getLine()},
                                     {"column", d.getColumn()},
                                     {"severity", std::string{d.getSeverity()}},
                                     {"message", std::string{d.getMessage()}}});
  return result;
}

json cases_of(wire::EvaluateResult::Reader x) {
  auto result = json::array();
  for (auto c : x.getCases())
    result.push_back({{"name", std::string{c.getName()}},
                      {"shape", std::string{c.getShape()}},
                      {"hidden", c.getHidden()},
                      {"pass", c.getPass()},
                      {"max_error", c.getMaxError()},
                      {"bound", c.getBound()},
                      {"first_bad", std::string{c.getFirstBad()}}});
  return result;
}

json timing_of(wire::Timing::Reader x) {
  if (!x.getMeasured()) return nullptr;
  auto s = x.getSpeedup();
  json result = {
      {"speedup", {{"estimate", s.getEstimate()}, {"low", s.getLow()}, {"high", s.getHigh()}}},
      {"candidate_ms", x.getCandidateMs()},
      {"reference_ms", x.getReferenceMs()},
      {"roofline_ms", x.getRooflineMs()},
      {"overhead_ms", x.getOverheadMs()},
      {"samples", x.getSamples()},
      {"clock", std::string{x.getClock()}},
      {"shape", std::string{x.getShape()}},
      {"note", std::string{x.getNote()}},
      {"kinds", json::array()}};
  for (auto k : x.getKinds())
    result["kinds"].push_back({{"name", std::string{k.getName()}},
                               {"candidate_ms", k.getCandidateMs()},
                               {"reference_ms", k.getReferenceMs()},
                               {"calls", k.getCalls()}});
  result["pairs"] = json::array();
  for (auto p : x.getPairs()) result["pairs"].push_back({p.getCandidateMs(), p.getReferenceMs()});
  return result;
}

json profile_of(wire::ProfileResult::Reader x) {
  if (!x.getAvailable() && x.getMissing().size() == 0) return nullptr;
  return {{"available", x.getAvailable()},
          {"bottleneck", std::string{x.getCard().getBottleneck()}},
          {"confidence", x.getCard().getConfidence()},
          {"evidence", texts(x.getCard().getEvidence())},
          {"next_actions", texts(x.getCard().getNextActions())},
          {"counters", quantities(x.getCounters())},
          {"missing", texts(x.getMissing())}};
}

void add_verdict(json& to, wire::Verdict::Reader x) {
  to["category"] = std::string{x.getCategory()};
  to["outcome"] = enum_name(capnp::DynamicEnum{x.getOutcome()});
  to["reward"] = x.getReward();
  to["components"] = json::array();
  for (auto c : x.getComponents())
    to["components"].push_back(
        {{"name", std::string{c.getName()}}, {"value", c.getValue()}, {"weight", c.getWeight()}});
  to["gates"] = json::array();
  for (auto g : x.getGates())
    to["gates"].push_back({{"name", std::string{g.getName()}},
                           {"status", enum_name(capnp::DynamicEnum{g.getStatus()})},
                           {"reason", std::string{g.getReason()}}});
  to["findings"] = json::array();
  for (auto f : x.getFindings())
    to["findings"].push_back({{"rule", std::string{f.getRule()}},
                              {"severity", enum_name(capnp::DynamicEnum{f.getSeverity()})},
                              {"evidence", std::string{f.getEvidence()}}});
  auto fault = fault_of(x.getFault());
  to["error"] = nullptr;
  if (fault.cls != fault_class::none)
    to["error"] = {{"class", std::string{to_string(fault.cls)}},
                   {"category", fault.category},
                   {"message", fault.message},
                   {"hint", fault.hint}};
}

json turn_document(wire::TurnRecord::Reader x, const artifact_store& artifacts) {
  auto facts = x.getFacts();
  auto said = x.getCompletion();
  json result = {{"turn", x.getTurn()},
                 {"max_turns", facts.getMaxTurns()},
                 {"id", std::string{x.getTurnId()}},
                 {"parent", std::string{x.getParentTurnId()}},
                 {"transition", std::string{x.getTransition()}},
                 {"started_at", x.getStartedAt()},
                 {"committed_at", x.getCommittedAt()},
                 {"terminal", x.getTerminal()},
                 {"stop_reason", std::string{x.getStopReason()}},
                 {"candidate_sha256", std::string{x.getCandidateSha256()}},
                 {"prompt", json::array()}};
  for (auto part : x.getPrompt())
    result["prompt"].push_back({{"role", std::string{part.getRole()}},
                                {"content", shown(content(artifacts.text(part.getContent())))}});
  result["completion"] = shown(content(artifacts.text(said.getText())));
  result["model"] = std::string{said.getModel()};
  result["finish_reason"] = std::string{said.getFinishReason()};
  result["attempts"] = said.getAttempts();
  result["prompt_tokens"] = said.getPromptTokens();
  result["completion_tokens"] = said.getCompletionTokens();
  result["candidate"] = shown(content(artifacts.candidate(x)));
  result["feedback"] = shown(content(artifacts.text(x.getFeedback())));
  add_verdict(result, x.getVerdict());
  result["build"] = build_of(facts.getBuild());
  auto evaluation = facts.getEvaluation();
  result["device"] = std::string{evaluation.getDevice()};
  result["cases"] = cases_of(evaluation);
  result["timing"] = timing_of(evaluation.getTiming());
  result["conditions"] = quantities(evaluation.getConditions());
  result["spans"] = quantities(evaluation.getSpans());
  result["output"] = shown(evaluation.getOutput().cStr());
  result["profile"] = profile_of(facts.getProfile());
  result["calls"] = json::array();
  for (auto call : x.getCalls()) {
    auto observation = content(artifacts.text(call.getObservation()));
    auto row = watch::call_json(call, observation);
    row["arguments"] = shown(content(artifacts.text(call.getArguments())));
    row["observation"] = shown(observation);
    result["calls"].push_back(std::move(row));
  }
  result.update(watch::times_json(x));
  return result;
}

tl::unexpected<error> nothing_of(const std::string& name) {
  return configuration_error("not_found", "failed to find " + name + ": nothing of it is stored",
                             "GET /api/v1/runs/{run}/episodes lists what is there");
}

} // namespace

namespace {

/// "g3.e1", if the run has something of it.
expected<json> name_if_stored(const store& from, const std::string& run, uint32_t group,
                              uint32_t member) {
  auto found = read_episode(from, run, group, member);
  KM_TRY(found);
  if (found->turns.empty() && !found->end) return json(nullptr);
  return json(fmt::format("g{}.e{}", group, member));
}

/// The episodes before and after one, in the order of their names; null: there is none.
expected<void> add_neighbours(json& to, const store& from, const std::string& run, uint32_t group,
                              uint32_t member) {
  json before, after;
  if (member > 0) {
    auto x = name_if_stored(from, run, group, member - 1);
    KM_TRY(x);
    before = *x;
  } else if (group > 0) {
    auto all = read_group(from, run, group - 1);
    KM_TRY(all);
    if (!all->episodes.empty())
      before = fmt::format("g{}.e{}", group - 1, all->episodes.back().member);
  }
  auto beside = name_if_stored(from, run, group, member + 1);
  KM_TRY(beside);
  after = *beside;
  if (after.is_null()) {
    auto next = name_if_stored(from, run, group + 1, 0);
    KM_TRY(next);
    after = *next;
  }
  to["previous"] = std::move(before);
  to["next"] = std::move(after);
  return {};
}

} // namespace

expected<json> episode_document(const watch::world& in, const run_directory& run,
                                const std::string& episode) {
  auto parts = parse_name(episode);
  if (!parts || !parts->member || parts->turn) return nothing_of("this episode");
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  auto stored = read_episode(**from, run.name, parts->group, *parts->member);
  KM_TRY(stored);
  artifact_store artifacts{run.artifacts};
  json result = {{"run", run.name}, {"episode", episode}, {"task", ""}, {"turns", json::array()}};
  for (const auto& record : stored->turns) {
    auto opened = record.open();
    result["task"] = std::string{opened->getTurn().getEpisode().getTask()};
    result["turns"].push_back(turn_document(opened->getTurn(), artifacts));
  }
  KM_TRY(add_neighbours(result, **from, run.name, parts->group, *parts->member));
  result["end"] = nullptr;
  if (stored->end) {
    auto opened = stored->end->open();
    auto end = opened->getEpisode();
    result["task"] = std::string{end.getEpisode().getTask()};
    auto returns = json::array();
    for (auto r : end.getReturns()) returns.push_back(r);
    result["end"] = {{"outcome", enum_name(capnp::DynamicEnum{end.getOutcome()})},
                     {"stop_reason", std::string{end.getStopReason()}},
                     {"best_turn", end.getBestTurn()},
                     {"best_speedup_lower",
                      end.getBestSpeedup() > 0 ? json(end.getBestSpeedup()) : json(nullptr)},
                     {"returns", std::move(returns)},
                     {"readiness", enum_name(capnp::DynamicEnum{end.getReadiness().getKind()})},
                     {"reasons", texts(end.getReadiness().getReasons())},
                     {"seconds", end.getSeconds()}};
    watch::add_tool_end(result["end"], end);
  }
  auto choices = choices_of(run, episode);
  KM_TRY(choices);
  watch::add_candidates(result, stored->turns, *choices);
  return result;
}

expected<std::string> turn_text(const watch::world& in, const run_directory& run,
                                const std::string& turn, const std::string& part) {
  auto parts = parse_name(turn);
  if (!parts || !parts->member || !parts->turn) return nothing_of("this turn");
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  auto stored = read_episode(**from, run.name, parts->group, *parts->member);
  KM_TRY(stored);
  artifact_store artifacts{run.artifacts};
  for (const auto& record : stored->turns) {
    auto opened = record.open();
    auto x = opened->getTurn();
    if (x.getTurn() != *parts->turn) continue;
    if (part == "completion") return artifacts.text(x.getCompletion().getText());
    if (part == "candidate") return artifacts.candidate(x);
    if (part == "feedback") return artifacts.text(x.getFeedback());
    if (part == "build") return std::string{x.getFacts().getBuild().getLog()};
    break;
  }
  return nothing_of("this text");
}

} // namespace kernelmill::page

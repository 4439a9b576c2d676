#include "storage/journal/tool_lines.hpp"

#include "messages/json.hpp"
#include "messages/judged.hpp"
#include "storage/json_values.hpp"

namespace kernelmill {

using nlohmann::ordered_json;

namespace {

ordered_json interval_line(wire::Interval::Reader x) {
  return {{"estimate", number(x.getEstimate())},
          {"low", number(x.getLow())},
          {"high", number(x.getHigh())}};
}

// What a call measured, in short: its observation has it in words.
ordered_json measured_line(wire::CallRecord::Reader call) {
  auto facts = call.getFacts();
  auto evaluation = facts.getEvaluation();
  ordered_json result = {{"compiled", facts.getBuild().getCompiled()},
                         {"correct", evaluation.getCorrect()}};
  if (evaluation.getTiming().getMeasured())
    result["speedup"] = interval_line(evaluation.getTiming().getSpeedup());
  if (!call.hasVerdict()) return result;
  auto verdict = call.getVerdict();
  result["outcome"] = enum_name(capnp::DynamicEnum{verdict.getOutcome()});
  result["category"] = text_of(verdict.getCategory());
  result["reward"] = is_paid(verdict) ? number(verdict.getReward()) : ordered_json(nullptr);
  return result;
}

expected<ordered_json> call_line(wire::CallRecord::Reader call, const artifact_store& artifacts) {
  auto arguments = artifacts.text(call.getArguments());
  KM_TRY(arguments);
  auto observation = artifacts.text(call.getObservation());
  KM_TRY(observation);
  ordered_json result = {{"id", text_of(call.getId())},
                         {"tool", text_of(call.getTool())},
                         {"arguments", *arguments},
                         {"observation", *observation},
                         {"status", text_of(call.getStatus())},
                         {"transition", text_of(call.getTransition())},
                         {"input", text_of(call.getInput())},
                         {"output", text_of(call.getOutput())},
                         {"steps", call.getSteps()},
                         {"gpu_seconds", number(call.getGpuSeconds())},
                         {"seconds", number(call.getSeconds())},
                         {"hidden", call.getHidden()}};
  if (call.getMeasured().size() > 0) result["measured"] = text_of(call.getMeasured());
  if (call.hasFacts()) result["eval_result"] = measured_line(call);
  return result;
}

expected<ordered_json> candidate_line(wire::CandidateNode::Reader x,
                                      const artifact_store& artifacts) {
  auto source = artifacts.text(x.getSource());
  KM_TRY(source);
  auto patch = artifacts.text(x.getPatch());
  KM_TRY(patch);
  return ordered_json{{"id", text_of(x.getId())},
                      {"parent", text_of(x.getParent())},
                      {"sha256", text_of(x.getSha256())},
                      {"source", *source},
                      {"role", text_of(x.getRole())},
                      {"origin", text_of(x.getOrigin())},
                      {"depth", x.getDepth()},
                      {"patch", *patch},
                      {"patch_kind", text_of(x.getPatchKind())},
                      {"summary", text_of(x.getSummary())}};
}

} // namespace

expected<void> add_tool_parts(ordered_json& to, wire::TurnRecord::Reader turn,
                              const artifact_store& artifacts) {
  bool has_any = turn.getCalls().size() + turn.getCandidates().size() + turn.getMarks().size() +
                     turn.getStrategies().size() + turn.getActive().size() + turn.getIdleSteps() >
                 0;
  if (!has_any) return {};
  auto& calls = to["calls"] = ordered_json::array();
  for (auto x : turn.getCalls()) {
    auto line = call_line(x, artifacts);
    KM_TRY(line);
    calls.push_back(std::move(*line));
  }
  auto& candidates = to["candidates"] = ordered_json::array();
  for (auto x : turn.getCandidates()) {
    auto line = candidate_line(x, artifacts);
    KM_TRY(line);
    candidates.push_back(std::move(*line));
  }
  auto& marks = to["marks"] = ordered_json::array();
  for (auto x : turn.getMarks())
    marks.push_back({{"id", text_of(x.getId())},
                     {"status", text_of(x.getStatus())},
                     {"speedup", interval_line(x.getSpeedup())}});
  auto& strategies = to["strategies"] = ordered_json::array();
  for (auto x : turn.getStrategies())
    strategies.push_back({{"name", text_of(x.getName())},
                          {"state", text_of(x.getState())},
                          {"note", text_of(x.getNote())}});
  to["active"] = text_of(turn.getActive());
  to["idle_steps"] = turn.getIdleSteps();
  to["calls_as_text"] = turn.getCompletion().getCallsAsText();
  return {};
}

void add_tool_end(ordered_json& to, wire::EpisodeRecord::Reader end) {
  if (end.getTerminalState().size() == 0) return;
  to["terminal_state"] = text_of(end.getTerminalState());
  to["steps"] = end.getSteps();
  to["gpu_seconds"] = number(end.getGpuSeconds());
}

} // namespace kernelmill

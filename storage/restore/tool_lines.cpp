#include "storage/restore/tool_lines.hpp"

#include "storage/restore/line_values.hpp"
#include "storage/restore/trace_record.hpp"

namespace kernelmill {

using namespace line_values;

namespace {

void read_interval(wire::Interval::Builder to, const json& from) {
  to.setEstimate(real(from.at("estimate")));
  to.setLow(real(from.at("low")));
  to.setHigh(real(from.at("high")));
}

void read_measured(wire::CallRecord::Builder to, const json& from) {
  auto facts = to.initFacts();
  facts.initBuild().setCompiled(from.at("compiled").get<bool>());
  auto evaluation = facts.initEvaluation();
  evaluation.setCorrect(from.at("correct").get<bool>());
  if (from.contains("speedup")) {
    evaluation.initTiming().setMeasured(true);
    read_interval(evaluation.getTiming().initSpeedup(), from["speedup"]);
  }
  if (!from.contains("outcome")) return;
  auto verdict = to.initVerdict();
  verdict.setOutcome(value_of<wire::Outcome>(text(from, "outcome")));
  verdict.setCategory(name_in(text(from, "category")));
  verdict.setReward(real(from.at("reward")));
  verdict.setUnpaid(from["reward"].is_null() &&
                    verdict.getOutcome() != wire::Outcome::INFRASTRUCTURE);
}

void read_call(wire::CallRecord::Builder to, const json& from, long_texts& texts) {
  to.setId(text(from, "id")); // the policy's own words, which readers clean
  to.setTool(text(from, "tool"));
  texts.put(to.initArguments(), text(from, "arguments"));
  texts.put(to.initObservation(), text(from, "observation"));
  to.setStatus(name_in(text(from, "status")));
  to.setTransition(name_in(text(from, "transition")));
  to.setInput(name_in(text(from, "input")));
  to.setOutput(name_in(text(from, "output")));
  to.setSteps(whole(from, "steps"));
  to.setGpuSeconds(real(from.at("gpu_seconds")));
  to.setSeconds(real(from.at("seconds")));
  to.setHidden(from.at("hidden").get<bool>());
  if (from.contains("measured")) to.setMeasured(name_in(text(from, "measured")));
  if (from.contains("eval_result")) read_measured(to, from["eval_result"]);
}

void read_candidate(wire::CandidateNode::Builder to, const json& from, long_texts& texts) {
  to.setId(name_in(text(from, "id")));
  to.setParent(name_in(text(from, "parent")));
  to.setSha256(name_in(text(from, "sha256")));
  texts.put(to.initSource(), text(from, "source"));
  to.setRole(name_in(text(from, "role")));
  to.setOrigin(name_in(text(from, "origin")));
  to.setDepth(whole(from, "depth"));
  texts.put(to.initPatch(), text(from, "patch"));
  to.setPatchKind(name_in(text(from, "patch_kind")));
  to.setSummary(text(from, "summary"));
}

} // namespace

void read_tool_parts(wire::TurnRecord::Builder to, const json& line, long_texts& texts) {
  if (!line.contains("calls")) return;
  auto size = [&](const char* key) { return static_cast<uint32_t>(line.at(key).size()); };
  auto calls = to.initCalls(size("calls"));
  for (uint32_t i = 0; i < calls.size(); ++i) read_call(calls[i], line["calls"][i], texts);
  auto candidates = to.initCandidates(size("candidates"));
  for (uint32_t i = 0; i < candidates.size(); ++i)
    read_candidate(candidates[i], line["candidates"][i], texts);
  auto marks = to.initMarks(size("marks"));
  for (uint32_t i = 0; i < marks.size(); ++i) {
    const auto& from = line["marks"][i];
    marks[i].setId(name_in(text(from, "id")));
    marks[i].setStatus(name_in(text(from, "status")));
    read_interval(marks[i].initSpeedup(), from.at("speedup"));
  }
  auto strategies = to.initStrategies(size("strategies"));
  for (uint32_t i = 0; i < strategies.size(); ++i) {
    const auto& from = line["strategies"][i];
    strategies[i].setName(text(from, "name"));
    strategies[i].setState(name_in(text(from, "state")));
    strategies[i].setNote(text(from, "note"));
  }
  to.setActive(name_in(text(line, "active")));
  if (line.contains("idle_steps")) to.setIdleSteps(whole(line, "idle_steps"));
  if (line.contains("calls_as_text"))
    to.getCompletion().setCallsAsText(line["calls_as_text"].get<bool>());
}

void read_tool_end(wire::EpisodeRecord::Builder to, const json& line) {
  if (!line.contains("terminal_state")) return;
  to.setTerminalState(name_in(text(line, "terminal_state")));
  to.setSteps(whole(line, "steps"));
  to.setGpuSeconds(real(line.at("gpu_seconds")));
}

} // namespace kernelmill

#include "launch/server/trackers/otlp_spans.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "launch/server/trackers/otlp_json.hpp"
#include "messages/identity.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"
#include "messages/trace_ids.hpp"

namespace kernelmill::trackers {

namespace {

constexpr const char* verdict_event = "gen_ai.evaluation.result";

template <class Enum>
std::string word(Enum x) {
  return enum_name(capnp::DynamicEnum{std::move(x)});
}

/// What all spans of a turn say.
struct turn_context {
  wire::TurnRecord::Reader turn;
  const traced_run& run;
  trace_id trace;
  uint64_t root = 0, own = 0;
  std::string conversation; ///< "RUN/g3.e1"
  std::string name;         ///< "g3.e1.t0"
};

trace_id trace_of(const traced_run& run, wire::EpisodeRef::Reader where) {
  return trace_of_episode(run_number(run.name),
                          uint64_t{where.getGroup()} * run.group_size + where.getMember());
}

episode_id id_of(wire::EpisodeRef::Reader x) {
  return {x.getRun().cStr(), x.getTask().cStr(), x.getGroup(), x.getMember()};
}

uint64_t root_of(trace_id trace) {
  return span_of(trace, "episode");
}

attributes operation(const turn_context& x, const char* name) {
  attributes result;
  result.add("gen_ai.operation.name", name)
      .add("gen_ai.conversation.id", x.conversation)
      .add("gen_ai.agent.name", "kernelmill");
  return result;
}

// What a kernel or a completion did wrong is said in words that may be theirs: a compiler quotes
// code, and an exception has any text. Without texts only the category is told.
bool may_quote(wire::Fault::Reader x) {
  return x.getClass() == wire::FaultClass::CANDIDATE || x.getClass() == wire::FaultClass::POLICY;
}

std::string message_of(wire::Fault::Reader x, const traced_run& run) {
  return run.texts == nullptr && may_quote(x) ? std::string{} : plain(x.getMessage());
}

std::string fault_text(wire::Fault::Reader x, const traced_run& run) {
  auto message = message_of(x, run);
  return message.empty() ? plain(x.getCategory()) : message;
}

// The same of a gate. Those that are left speak of our own numbers.
std::string reason_of(wire::Gate::Reader gate, const traced_run& run) {
  std::string_view name{gate.getName().begin(), gate.getName().size()};
  bool quotes = name != "performance" && name != "determinism" && name != "originality";
  bool failed = gate.getStatus() == wire::GateStatus::FAIL;
  return run.texts == nullptr && quotes && failed ? std::string{} : plain(gate.getReason());
}

bool is_fault(wire::Fault::Reader x) {
  return x.getClass() != wire::FaultClass::NONE;
}

json text_message(const char* role, const std::string& text) {
  json part = {{"type", "text"}, {"content", text}};
  return {{"role", role}, {"parts", json::array({std::move(part)})}};
}

std::string dumped(const json& x) {
  return x.dump(-1, ' ', false, json::error_handler_t::replace);
}

expected<void> add_messages(attributes& to, const turn_context& x) {
  auto input = json::array();
  for (auto part : x.turn.getPrompt()) {
    auto text = x.run.texts->text(part.getContent());
    KM_TRY(text);
    input.push_back(text_message(part.getRole().cStr(), *text));
  }
  auto answer = x.run.texts->text(x.turn.getCompletion().getText());
  KM_TRY(answer);
  auto output = json::array({text_message("assistant", *answer)});
  output[0]["finish_reason"] = x.turn.getCompletion().getFinishReason().cStr();
  to.add("gen_ai.input.messages", dumped(input)).add("gen_ai.output.messages", dumped(output));
  return {};
}

void add_sampling(attributes& to, const turn_context& x) {
  const auto& sampling = x.run.sampling;
  to.add("gen_ai.request.temperature", sampling.temperature)
      .add("gen_ai.request.top_p", sampling.top_p)
      .add("gen_ai.request.max_tokens", sampling.max_tokens)
      .add("gen_ai.request.stream", x.run.stream);
  if (!sampling.stop.empty()) to.add("gen_ai.request.stop_sequences", sampling.stop);
  if (sampling.seed >= 0)
    to.add("gen_ai.request.seed",
           request_seed(x.run.seed, sampling.seed, id_of(x.turn.getEpisode()), x.turn.getTurn()));
}

// The fault of the turn is the model's or the server's when nothing was built.
bool ended_at_policy(wire::TurnRecord::Reader turn) {
  return is_fault(turn.getFacts().getFault()) && turn.getSeconds().getBuild() == 0;
}

expected<json> chat_span(const turn_context& x, double start) {
  auto answer = x.turn.getCompletion();
  auto request = plain(answer.getRequestId()), answered = plain(answer.getModel());
  auto model = x.run.model.empty() ? answered : x.run.model;
  auto list = operation(x, "chat");
  list.say("gen_ai.provider.name", x.run.provider)
      .say("gen_ai.request.model", model)
      .say("gen_ai.response.model", answered);
  add_sampling(list, x);
  if (answer.getFinishReason().size() > 0)
    list.add("gen_ai.response.finish_reasons", std::vector{plain(answer.getFinishReason())});
  list.add("gen_ai.usage.input_tokens", answer.getPromptTokens())
      .add("gen_ai.usage.output_tokens", answer.getCompletionTokens())
      .say("kernelmill.request.id", request)
      .add("kernelmill.request.attempts", answer.getAttempts());
  std::vector<std::string> versions;
  for (auto span : answer.getWeightVersions()) versions.push_back(plain(span.getVersion()));
  if (!versions.empty()) list.add("kernelmill.weight_versions", versions);
  if (x.run.texts != nullptr) KM_TRY(add_messages(list, x));
  span_frame frame;
  frame.id = span_of(x.trace, request.empty() ? x.name + ".chat" : request);
  frame.parent = x.own;
  frame.name = model.empty() ? "chat" : "chat " + model;
  frame.kind = client_kind;
  frame.start = start;
  frame.end = start + x.turn.getSeconds().getPolicy();
  if (ended_at_policy(x.turn)) {
    auto fault = x.turn.getFacts().getFault();
    list.add("error.type", fault.getCategory());
    frame.error = fault_text(fault, x.run);
  }
  frame.list = list.take();
  return make_span(x.trace, std::move(frame));
}

json tool_span(const turn_context& x, const char* tool, double start, double seconds,
               wire::Fault::Reader fault, attributes more) {
  auto call = x.name + "." + tool;
  auto list = operation(x, "execute_tool");
  list.add("gen_ai.tool.name", tool)
      .add("gen_ai.tool.type", "function")
      .add("gen_ai.tool.call.id", call);
  span_frame frame;
  if (is_fault(fault)) {
    list.add("error.type", fault.getCategory());
    frame.error = fault_text(fault, x.run);
  }
  frame.id = span_of(x.trace, call);
  frame.parent = x.own;
  frame.name = std::string{"execute_tool "} + tool;
  frame.start = start;
  frame.end = start + seconds;
  frame.list = list.take();
  for (auto& one : more.take()) frame.list.push_back(std::move(one));
  return make_span(x.trace, std::move(frame));
}

expected<attributes> build_facts(const turn_context& x) {
  auto build = x.turn.getFacts().getBuild();
  attributes result;
  result.add("kernelmill.build.compiled", build.getCompiled())
      .add("kernelmill.build.cached", build.getCached())
      .say("kernelmill.build.toolchain", plain(build.getToolchain()));
  if (x.run.texts == nullptr) return result;
  auto kernel = x.run.texts->candidate(x.turn);
  KM_TRY(kernel);
  result.add("gen_ai.tool.call.arguments", *kernel)
      .say("gen_ai.tool.call.result", plain(build.getLog()));
  return result;
}

attributes evaluation_facts(const turn_context& x) {
  auto evaluation = x.turn.getFacts().getEvaluation();
  auto cases = evaluation.getCases();
  uint32_t passed = 0;
  for (auto one : cases) passed += one.getPass() ? 1 : 0;
  attributes result;
  result.add("kernelmill.evaluation.correct", evaluation.getCorrect())
      .add("kernelmill.evaluation.cases", cases.size())
      .add("kernelmill.evaluation.cases_passed", passed)
      .say("kernelmill.evaluation.device", plain(evaluation.getDevice()));
  if (auto timing = evaluation.getTiming(); timing.getMeasured())
    result.say("kernelmill.evaluation.candidate_ms", timing.getCandidateMs())
        .say("kernelmill.evaluation.reference_ms", timing.getReferenceMs())
        .say("kernelmill.evaluation.speedup", timing.getSpeedup().getEstimate())
        .say("kernelmill.evaluation.speedup_low", timing.getSpeedup().getLow())
        .say("kernelmill.evaluation.speedup_high", timing.getSpeedup().getHigh());
  return result;
}

json verdict_event_of(double at, const char* name, double score, const std::string& label,
                      const std::string& explanation) {
  attributes list;
  list.add("gen_ai.evaluation.name", name)
      .say("gen_ai.evaluation.score.value", score)
      .say("gen_ai.evaluation.score.label", label)
      .say("gen_ai.evaluation.explanation", explanation);
  return make_event(verdict_event, at, list.take());
}

json verdict_events(wire::TurnRecord::Reader turn, const traced_run& run) {
  auto verdict = turn.getVerdict();
  auto at = turn.getCommittedAt();
  auto result = json::array();
  for (auto gate : verdict.getGates()) {
    if (gate.getStatus() == wire::GateStatus::NOT_RUN) continue;
    auto passed = gate.getStatus() == wire::GateStatus::PASS;
    auto name = "gate." + plain(gate.getName());
    result.push_back(verdict_event_of(at, name.c_str(), passed ? 1 : 0, word(gate.getStatus()),
                                      reason_of(gate, run)));
  }
  if (auto timing = turn.getFacts().getEvaluation().getTiming(); timing.getMeasured())
    result.push_back(verdict_event_of(at, "speedup", timing.getSpeedup().getLow(), {},
                                      "the lower end of the 95 % interval"));
  result.push_back(
      verdict_event_of(at, "reward", is_paid(verdict) ? verdict.getReward() : std::nan(""),
                       plain(verdict.getCategory()), message_of(verdict.getFault(), run)));
  for (auto finding : verdict.getFindings()) {
    attributes list;
    list.add("kernelmill.finding.rule", finding.getRule())
        .add("kernelmill.finding.severity", word(finding.getSeverity()));
    if (run.texts != nullptr) list.add("kernelmill.finding.evidence", finding.getEvidence());
    result.push_back(make_event("kernelmill.finding", at, list.take()));
  }
  return result;
}

expected<json> turn_span(const turn_context& x) {
  auto verdict = x.turn.getVerdict();
  auto seconds = x.turn.getSeconds();
  attributes list;
  list.add("gen_ai.conversation.id", x.conversation)
      .add("kernelmill.task", x.turn.getEpisode().getTask())
      .add("kernelmill.turn", x.turn.getTurn())
      .add("kernelmill.turn_id", x.turn.getTurnId())
      .add("kernelmill.outcome", word(verdict.getOutcome()))
      .add("kernelmill.category", verdict.getCategory());
  if (is_paid(verdict)) list.say("kernelmill.reward", verdict.getReward());
  list.say("kernelmill.transition", plain(x.turn.getTransition()))
      .say("kernelmill.candidate.sha256", plain(x.turn.getCandidateSha256()))
      .say("kernelmill.stop_reason", plain(x.turn.getStopReason()));
  if (x.run.texts != nullptr) {
    auto feedback = x.run.texts->text(x.turn.getFeedback());
    KM_TRY(feedback);
    list.say("kernelmill.feedback", *feedback);
  }
  span_frame frame;
  frame.id = x.own;
  frame.parent = x.root;
  frame.name = "turn t" + std::to_string(x.turn.getTurn());
  frame.start = x.turn.getStartedAt() - seconds.getRetrieve();
  frame.end = x.turn.getCommittedAt();
  frame.events = verdict_events(x.turn, x.run);
  if (verdict.getOutcome() == wire::Outcome::INFRASTRUCTURE) {
    list.add("error.type", verdict.getCategory());
    frame.error = is_fault(verdict.getFault()) ? fault_text(verdict.getFault(), x.run)
                                               : plain(verdict.getCategory());
  }
  frame.list = list.take();
  return make_span(x.trace, std::move(frame));
}

} // namespace

bool is_traced(const traced_run& run, wire::EpisodeRef::Reader where, double share) {
  return static_cast<double>(trace_of(run, where).low >> 11) * 0x1p-53 < share;
}

expected<std::vector<json>> turn_spans(wire::TurnRecord::Reader turn, const traced_run& run) {
  auto where = turn.getEpisode();
  auto trace = trace_of(run, where);
  auto id = id_of(where);
  auto name = short_name(id, turn.getTurn());
  turn_context x{
      turn, run, trace, root_of(trace), span_of(trace, name), run.name + "/" + short_name(id),
      name};
  std::vector<json> result;
  auto seconds = turn.getSeconds();
  auto facts = turn.getFacts();
  auto at = turn.getStartedAt();
  auto none = wire::Fault::Reader{};
  if (seconds.getRetrieve() > 0) {
    attributes list;
    list.add("kernelmill.retrieval.examples", turn.getExamples().size());
    result.push_back(tool_span(x, "retrieve", at - seconds.getRetrieve(), seconds.getRetrieve(),
                               none, std::move(list)));
  }
  auto chat = chat_span(x, at);
  KM_TRY(chat);
  result.push_back(std::move(*chat));
  at += seconds.getPolicy();
  if (seconds.getBuild() > 0) {
    auto list = build_facts(x);
    KM_TRY(list);
    result.push_back(tool_span(x, "build", at, seconds.getBuild(), facts.getBuild().getFault(),
                               std::move(*list)));
    at += seconds.getBuild();
  }
  if (seconds.getEvaluate() > 0) {
    result.push_back(tool_span(x, "evaluate", at, seconds.getEvaluate(),
                               facts.getEvaluation().getFault(), evaluation_facts(x)));
    at += seconds.getEvaluate();
  }
  if (seconds.getProfile() > 0)
    result.push_back(tool_span(x, "profile", at, seconds.getProfile(), none, {}));
  auto whole = turn_span(x);
  KM_TRY(whole);
  result.push_back(std::move(*whole));
  return result;
}

json episode_span(wire::EpisodeRecord::Reader end, const stored_episode& turns,
                  const traced_run& run) {
  auto where = end.getEpisode();
  auto trace = trace_of(run, where);
  uint64_t input = 0, output = 0;
  auto start = end.getCommittedAt() - end.getSeconds();
  for (const auto& record : turns.turns) {
    auto view = record.open();
    auto turn = view->getTurn();
    input += turn.getCompletion().getPromptTokens();
    output += turn.getCompletion().getCompletionTokens();
    start = std::min(start, turn.getStartedAt() - turn.getSeconds().getRetrieve());
  }
  attributes list;
  list.add("gen_ai.operation.name", "invoke_agent")
      .add("gen_ai.agent.name", "kernelmill")
      .add("gen_ai.agent.version", KERNELMILL_VERSION)
      .say("gen_ai.provider.name", run.provider)
      .say("gen_ai.request.model", run.model)
      .add("gen_ai.conversation.id", run.name + "/" + short_name(id_of(where)))
      .add("gen_ai.usage.input_tokens", input)
      .add("gen_ai.usage.output_tokens", output)
      .add("kernelmill.run", run.name)
      .add("kernelmill.task", where.getTask())
      .add("kernelmill.group", where.getGroup())
      .add("kernelmill.member", where.getMember())
      .add("kernelmill.turns", end.getTurns())
      .add("kernelmill.stop_reason", end.getStopReason())
      .add("kernelmill.outcome", word(end.getOutcome()))
      .add("kernelmill.readiness", word(end.getReadiness().getKind()))
      .add("kernelmill.best_turn", end.getBestTurn())
      .say("kernelmill.best_speedup_lower", end.getBestSpeedup());
  std::string reasons;
  for (auto reason : end.getReadiness().getReasons())
    reasons += (reasons.empty() ? "" : "; ") + plain(reason);
  auto returns = end.getReturns();
  span_frame frame;
  frame.events.push_back(verdict_event_of(end.getCommittedAt(), "return",
                                          returns.size() > 0 ? returns[0] : std::nan(""),
                                          word(end.getOutcome()), reasons));
  if (end.getOutcome() == wire::Outcome::INFRASTRUCTURE) {
    list.add("error.type", end.getStopReason());
    frame.error = "nothing of it can be trained on: " + plain(end.getStopReason());
  }
  frame.id = root_of(trace);
  frame.name = "invoke_agent kernelmill";
  frame.start = start;
  frame.end = end.getCommittedAt();
  frame.list = list.take();
  return make_span(trace, std::move(frame));
}

} // namespace kernelmill::trackers

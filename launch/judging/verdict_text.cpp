#include "launch/judging/verdict_text.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "messages/base/json_value.hpp"
#include "messages/gate_words.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"
#include "messages/shapes.hpp"
#include "messages/sol_score.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

std::string str(capnp::Text::Reader x) {
  return {x.cStr(), x.size()};
}

json finite(double x) {
  return std::isfinite(x) ? json(x) : json(nullptr);
}

template <class E>
std::string word(E value) {
  return enum_name(capnp::DynamicEnum{E{value}});
}

json cases_json(wire::EvaluateResult::Reader evaluation) {
  auto result = json::array();
  for (auto c : evaluation.getCases())
    result.push_back({{"name", str(c.getName())},
                      {"shape", str(c.getShape())},
                      {"visibility", c.getHidden() ? "hidden" : "visible"},
                      {"distribution", str(c.getDistribution())},
                      {"max_error", finite(c.getMaxError())},
                      {"bound", finite(c.getBound())},
                      {"pass", c.getPass()},
                      {"bad_count", c.getBadCount()},
                      {"first_bad", cli::clean(str(c.getFirstBad()))}});
  return result;
}

json integrity_json(wire::Verdict::Reader verdict) {
  auto findings = json::array();
  bool clean = true;
  for (auto f : verdict.getFindings()) {
    clean = clean && f.getSeverity() != wire::Severity::CRITICAL;
    findings.push_back({{"rule", str(f.getRule())},
                        {"severity", word(f.getSeverity())},
                        {"evidence", cli::clean(str(f.getEvidence()))}});
  }
  return {{"clean", clean}, {"findings", findings}};
}

// What the verb of the task asks for beyond right results.
json checks_json(wire::TurnFacts::Reader facts) {
  auto result = json::array();
  for (auto x : facts.getEvidence())
    result.push_back({{"name", str(x.getName())},
                      {"visibility", x.getHidden() ? "hidden" : "visible"},
                      {"right", x.getRight()},
                      {"note", cli::clean(str(x.getNote()))}});
  return result;
}

std::string checks_text(wire::TurnFacts::Reader facts) {
  std::string result;
  for (auto x : facts.getEvidence())
    result += fmt::format("{}{}: {}{}\n", str(x.getName()), x.getHidden() ? " (hidden)" : "",
                          x.getRight() ? "" : "WRONG: ", cli::clean(str(x.getNote())));
  return result.empty() ? result : "\n" + result;
}

// The cause of a missing time, or null.
json not_timed_word(wire::Timing::Reader t) {
  if (t.getNotTimed() == wire::NotTimed::NO) return nullptr;
  return word(t.getNotTimed());
}

/// By the lower bound of the speedup, as rewards have it; nothing where there is no scale.
std::optional<double> sol_score_of(wire::Timing::Reader t) {
  auto baseline = t.getReferenceMs(), low = t.getSpeedup().getLow();
  if (!t.getMeasured() || !(low > 0) || !has_sol_scale(baseline, t.getRooflineMs())) return {};
  return sol_score(baseline / low, baseline, t.getRooflineMs());
}

json quantities_json(capnp::List<wire::Quantity>::Reader list) {
  json result = json::array();
  for (auto x : list)
    result.push_back(
        {{"name", str(x.getName())}, {"value", x.getValue()}, {"unit", str(x.getUnit())}});
  return result;
}

json seconds_json(capnp::List<wire::Quantity>::Reader spans) {
  json result = json::object();
  for (auto x : spans) result[str(x.getName())] = x.getValue();
  return result;
}

json words_json(capnp::List<capnp::Text>::Reader list) {
  auto result = json::array();
  for (auto x : list) result.push_back(str(x));
  return result;
}

json kernels_json(wire::BuildResult::Reader b) {
  auto result = json::array();
  for (auto k : b.getKernels())
    result.push_back({{"name", cli::clean(str(k.getName()))},
                      {"registers", k.getRegisters()},
                      {"spill_stores", k.getSpillStores()},
                      {"spill_loads", k.getSpillLoads()},
                      {"stack_frame", k.getStackFrame()},
                      {"shared_bytes", k.getSharedBytes()}});
  return result;
}

std::string gates_text(wire::Verdict::Reader verdict, bool colour) {
  std::string result;
  bool accepted = verdict.getOutcome() == wire::Outcome::ACCEPTED;
  for (auto g : verdict.getGates()) {
    auto status = g.getStatus();
    std::string state{gate_word(verdict.getOutcome(), g)};
    auto reason = cli::clean(str(g.getReason()));
    // Of an accepted candidate the one gate that can fail says how fast it is.
    bool slow = accepted && status == wire::GateStatus::FAIL;
    if (slow)
      reason += state == "copy" ? "; the kernel stays accepted, and its speed is not rewarded"
                                : "; the kernel stays accepted, and its reward follows that bound";
    auto shade = status == wire::GateStatus::PASS   ? cli::colour::green
                 : slow                             ? cli::colour::yellow
                 : status == wire::GateStatus::FAIL ? cli::colour::red
                                                    : cli::colour::dim;
    state.resize(8, ' ');
    result += cli::hanging(
        fmt::format("  {} {:<13} ", cli::paint(colour, shade, state), str(g.getName())), 25,
        reason);
  }
  return result;
}

/// Whether a gate gives it as its reason: then it is said, once.
bool is_said(wire::Verdict::Reader verdict, const std::string& reason) {
  for (auto g : verdict.getGates())
    if (g.getReason() == reason.c_str()) return true;
  return false;
}

std::string cases_text(wire::EvaluateResult::Reader evaluation, wire::Verdict::Reader verdict) {
  std::vector<std::vector<std::string>> rows;
  for (auto c : evaluation.getCases()) {
    std::string result = c.getPass() ? "pass" : "FAIL";
    if (!c.getPass() && !is_said(verdict, str(c.getFirstBad())))
      result += " " + cli::clean(str(c.getFirstBad()));
    rows.push_back({str(c.getName()), str(c.getShape()), c.getHidden() ? "hidden" : "visible",
                    fmt::format("{:.3g}", c.getMaxError()), fmt::format("{:.3g}", c.getBound()),
                    std::move(result)});
  }
  return rows.empty()
             ? std::string{}
             : "\n" + cli::format_table(
                          {"CASE", "SHAPE", "VISIBILITY", "MAX ERROR>", "BOUND>", "RESULT"}, rows);
}

// Nothing of a task's own baseline.
std::string baseline_text(wire::Timing::Reader t) {
  std::string result;
  if (t.getBaseline().size() == 0) return result;
  result = "  the baseline is " + cli::clean(str(t.getBaseline())) + "\n";
  if (auto note = cli::clean(str(t.getBaselineNote())); !note.empty()) result += "  " + note + "\n";
  if (auto eager = eager_speedup(t))
    result += fmt::format("  against eager: speedup {:.3f}, an estimate ({} of eager)\n", *eager,
                          cli::format_seconds(t.getEagerMs() / 1e3));
  return result;
}

std::string shape_text(wire::KindTime::Reader x) {
  auto speedup = x.getReferenceMs() / x.getCandidateMs();
  auto text = fmt::format("  {}: {} against {}, speedup {:.3f}", x.getName().cStr(),
                          cli::format_seconds(x.getCandidateMs() / 1e3),
                          cli::format_seconds(x.getReferenceMs() / 1e3), speedup);
  if (x.getSpeedupLow() > 0)
    text += fmt::format(" [{:.3f}, {:.3f}]", x.getSpeedupLow(), x.getSpeedupHigh());
  return text + (speedup < 1 ? ", slower than the baseline\n" : "\n");
}

std::string timing_text(wire::Timing::Reader t) {
  if (t.getNotTimed() != wire::NotTimed::NO)
    return fmt::format("\nnot timed, for which the {} is the cause\n", word(t.getNotTimed()));
  if (!t.getMeasured()) return {};
  auto sol = sol_score_of(t);
  auto result = fmt::format(
      "\ntiming at {}: {} against {} of the baseline, speedup {}, {} samples, outside clock{}\n",
      str(t.getShape()), cli::format_seconds(t.getCandidateMs() / 1e3),
      cli::format_seconds(t.getReferenceMs() / 1e3), interval_text(t.getSpeedup()), t.getSamples(),
      sol ? fmt::format(", SOL score {:.3f}", *sol) : std::string{});
  result += baseline_text(t);
  for (auto x : t.getKinds())
    if (is_shape(x.getName().cStr()) && x.getCandidateMs() > 0) result += shape_text(x);
  return result;
}

// Words that may be a candidate's: no line but the first stands alone.
std::string marked(const std::string& text) {
  std::string result;
  for (char c : cli::clean(text)) {
    result += c;
    if (c == '\n') result += "| ";
  }
  return result;
}

std::string findings_text(wire::Verdict::Reader verdict, bool colour) {
  std::string result;
  for (auto f : verdict.getFindings()) {
    auto rule = str(f.getRule()), evidence = str(f.getEvidence());
    result += fmt::format("\n{} {}", cli::paint(colour, cli::colour::yellow, word(f.getSeverity())),
                          rule);
    if (!is_said(verdict, rule + ": " + evidence)) result += ": " + marked(evidence);
    result += "\n";
  }
  return result;
}

std::string log_text(wire::BuildResult::Reader b) {
  auto log = cli::clean(str(b.getLog()));
  if (b.getCompiled() || log.empty()) return {};
  return "\n" + log + (log.ends_with("\n") ? "" : "\n");
}

} // namespace

json timing_json(wire::Timing::Reader t) {
  bool measured = t.getMeasured();
  auto sol = sol_score_of(t), eager = eager_speedup(t);
  auto number = [&](double x) { return measured ? finite(x) : json(nullptr); };
  auto s = t.getSpeedup();
  auto both = [&](double candidate, double reference) -> json {
    if (!measured || candidate <= 0 || reference <= 0) return nullptr;
    return {{"candidate", finite(candidate)}, {"reference", finite(reference)}};
  };
  json kinds = json::array();
  for (auto x : t.getKinds()) {
    json one{{"name", str(x.getName())},
             {"candidate_ms", finite(x.getCandidateMs())},
             {"reference_ms", finite(x.getReferenceMs())},
             {"calls", x.getCalls()}};
    if (x.getSpeedupLow() > 0)
      one["speedup"] = {{"low", finite(x.getSpeedupLow())}, {"high", finite(x.getSpeedupHigh())}};
    kinds.push_back(std::move(one));
  }
  return {{"measured", measured},
          {"candidate_ms", number(t.getCandidateMs())},
          {"reference_ms", number(t.getReferenceMs())},
          {"speedup",
           {{"estimate", number(s.getEstimate())},
            {"low", number(s.getLow())},
            {"high", number(s.getHigh())}}},
          {"samples", t.getSamples()},
          {"clock", str(t.getClock())},
          {"overhead_ms", number(t.getOverheadMs())},
          {"roofline_ms", number(t.getRooflineMs())},
          {"sol_score", sol ? finite(*sol) : json(nullptr)},
          {"call_ms", both(t.getCandidateCallMs(), t.getReferenceCallMs())},
          {"device_ms", both(t.getCandidateDeviceMs(), t.getReferenceDeviceMs())},
          {"baseline", str(t.getBaseline()).empty() ? json("task") : json(str(t.getBaseline()))},
          {"baseline_note", str(t.getBaselineNote())},
          {"eager_ms", t.getEagerMs() > 0 ? number(t.getEagerMs()) : json(nullptr)},
          {"eager_speedup", eager ? finite(*eager) : json(nullptr)},
          {"kinds", std::move(kinds)},
          {"shape", str(t.getShape())},
          {"not_timed", not_timed_word(t)},
          {"note", str(t.getNote())}};
}

json profile_json(wire::ProfileResult::Reader x) {
  auto card = x.getCard();
  auto texts = [](capnp::List<capnp::Text>::Reader list) {
    auto result = json::array();
    for (auto text : list) result.push_back(cli::clean(str(text)));
    return result;
  };
  json counters = json::object(), roofline = json::object();
  roofline_position unused;
  for (auto c : x.getCounters()) {
    auto name = str(c.getName());
    if (set_quantity(unused, name, c.getValue()))
      roofline[name] = {{"value", finite(c.getValue())}, {"unit", str(c.getUnit())}};
    else
      counters[cli::clean(name)] = finite(c.getValue());
  }
  return {{"available", x.getAvailable()},
          {"bottleneck", str(card.getBottleneck())},
          {"confidence", finite(card.getConfidence())},
          {"evidence", texts(card.getEvidence())},
          {"next_actions", texts(card.getNextActions())},
          {"counters", std::move(counters)},
          {"roofline", std::move(roofline)},
          {"missing", texts(x.getMissing())}};
}

json build_json(wire::BuildResult::Reader b) {
  auto diagnostics = json::array();
  for (auto d : b.getDiagnostics())
    diagnostics.push_back({{"file", str(d.getFile())},
                           {"line", d.getLine()},
                           {"column", d.getColumn()},
                           {"severity", str(d.getSeverity())},
                           {"message", cli::clean(str(d.getMessage()))}});
  return {{"cached", b.getCached()},
          {"seconds", b.getSeconds()},
          {"toolchain", str(b.getToolchain())},
          {"diagnostics", diagnostics},
          {"kernels", kernels_json(b)}};
}

roofline_position position_of(wire::ProfileResult::Reader x) {
  roofline_position result;
  for (auto c : x.getCounters()) (void)set_quantity(result, str(c.getName()), c.getValue());
  return result;
}

std::string profile_text(wire::ProfileResult::Reader x) {
  std::string result;
  auto card = x.getCard();
  bool known = card.getBottleneck().size() > 0 && str(card.getBottleneck()) != "unknown";
  if (x.getAvailable() && known)
    result = fmt::format("limited by {} (confidence {:.2g})\n",
                         cli::clean(str(card.getBottleneck())), card.getConfidence());
  for (auto line : card.getEvidence()) result += cli::clean(str(line)) + "\n";
  for (auto line : card.getNextActions()) result += "try: " + cli::clean(str(line)) + "\n";
  if (auto place = position_text(position_of(x)); !place.empty())
    result += "roofline: " + place + "\n";
  if (!x.getAvailable() && x.getMissing().size() > 0)
    result += "none: " + cli::clean(str(x.getMissing()[0])) + "\n";
  return result;
}

std::string interval_text(wire::Interval::Reader x) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", x.getEstimate(), x.getLow(), x.getHigh());
}

json verdict_json(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict) {
  auto evaluation = facts.getEvaluation();
  auto fault = verdict.getFault();
  json problems = json::array();
  for (auto p : facts.getParsed().getProblems()) problems.push_back(cli::clean(str(p)));
  return {{"task", str(facts.getTask())},
          {"candidate_sha256", str(facts.getCandidateSha256())},
          {"backend", str(facts.getBackend())},
          {"contract", str(facts.getContract())},
          {"format_ok", facts.getParsed().getOk()},
          {"format_problems", problems},
          {"compiled", facts.getBuild().getCompiled()},
          {"build", build_json(facts.getBuild())},
          {"correct", evaluation.getCorrect()},
          {"deterministic", evaluation.getDeterministic()},
          {"cases", cases_json(evaluation)},
          {"checks", checks_json(facts)},
          {"integrity", integrity_json(verdict)},
          {"timing", timing_json(evaluation.getTiming())},
          {"profile", profile_json(facts.getProfile())},
          {"conditions", quantities_json(evaluation.getConditions())},
          {"slot_seconds", seconds_json(evaluation.getSpans())},
          {"gates", kernelmill::to_json(capnp::DynamicStruct::Reader{verdict})["gates"]},
          {"reward", is_paid(verdict) ? finite(verdict.getReward()) : json(nullptr)},
          {"outcome", word(verdict.getOutcome())},
          {"category", str(verdict.getCategory())},
          {"device", str(evaluation.getDevice())},
          {"device_uuid", str(evaluation.getDeviceUuid())},
          {"layers", words_json(evaluation.getLayers())},
          {"output", cli::clean(str(evaluation.getOutput()))},
          {"sealed", evaluation.getSealed()},
          {"error",
           {{"class", word(fault.getClass())},
            {"category", str(fault.getCategory())},
            {"message", cli::clean(str(fault.getMessage()))},
            {"hint", cli::clean(str(fault.getHint()))}}}};
}

std::string verdict_text(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict,
                         bool colour) {
  auto outcome = verdict.getOutcome();
  auto shade = outcome == wire::Outcome::ACCEPTED ? cli::colour::green
               : outcome == wire::Outcome::OPEN   ? cli::colour::yellow
                                                  : cli::colour::red;
  auto result = fmt::format("{}  candidate {}  {}/{}\n\n", str(facts.getTask()),
                            str(facts.getCandidateSha256()).substr(0, 12), str(facts.getBackend()),
                            str(facts.getContract()));
  result += gates_text(verdict, colour);
  for (auto p : facts.getParsed().getProblems())
    if (!is_said(verdict, str(p))) result += "\nformat: " + cli::clean(str(p)) + "\n";
  result += log_text(facts.getBuild());
  result += cases_text(facts.getEvaluation(), verdict);
  result += checks_text(facts);
  result += timing_text(facts.getEvaluation().getTiming());
  result += findings_text(verdict, colour);
  if (auto fault = verdict.getFault(); fault.getClass() != wire::FaultClass::NONE) {
    result += "\n" + str(fault.getCategory());
    if (!is_said(verdict, str(fault.getMessage())))
      result += ": " + marked(str(fault.getMessage()));
    result += "\n";
    if (fault.getHint().size() > 0) result += "next: " + cli::clean(str(fault.getHint())) + "\n";
  }
  result += fmt::format("\n{}", cli::paint(colour, shade, word(outcome)));
  auto category = str(verdict.getCategory());
  if (category == "not_timed") result += ", " + category;
  if (category == "slower") result += ", slower than asked for";
  result += is_paid(verdict) ? fmt::format(", reward {:.3f}\n", verdict.getReward()) : "\n";
  return result;
}

} // namespace kernelmill

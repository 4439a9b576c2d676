#include "actors/governance/judge.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "actors/governance/reward.hpp"
#include "messages/copied.hpp"
#include "messages/sol_score.hpp"

namespace kernelmill {

namespace {

using wire::FaultClass;
using wire::GateStatus;

enum gate_index : size_t {
  format,
  build_gate,
  correctness,
  determinism,
  integrity,
  memory_safety,
  performance,
  originality
};

constexpr std::array<const char*, 8> gate_names{"format",      "build",      "correctness",
                                                "determinism", "integrity",  "memory_safety",
                                                "performance", "originality"};

constexpr const char* not_timed = "not_timed";

struct gate {
  GateStatus status = GateStatus::NOT_RUN;
  std::string reason;
};

struct judged_fault {
  FaultClass cls = FaultClass::NONE;
  std::string category;
  std::string message;
  std::string hint;
};

struct judgement {
  wire::Outcome outcome = wire::Outcome::REJECTED;
  std::array<gate, gate_names.size()> gates;
  judged_fault fault;
  std::string category;
  bool unpaid = false; // accepted, and the machine could not time it
  reward_breakdown reward;
};

std::string text_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

bool is(capnp::Text::Reader text, std::string_view word) {
  return std::string_view{text.begin(), text.size()} == word;
}

judged_fault fault_of(wire::Fault::Reader x) {
  return {x.getClass(), text_of(x.getCategory()), text_of(x.getMessage()), text_of(x.getHint())};
}

judged_fault fault_or(wire::Fault::Reader x, FaultClass cls, const char* category,
                      std::string message) {
  if (x.getClass() == FaultClass::NONE) return {cls, category, std::move(message), {}};
  auto result = fault_of(x);
  if (result.category.empty()) result.category = category;
  if (result.message.empty()) result.message = std::move(message);
  return result;
}

// A fault of the user stops the run, and one of ours is retried. Neither concerns the candidate.
bool is_ours(wire::Fault::Reader x) {
  return x.getClass() == FaultClass::INFRASTRUCTURE || x.getClass() == FaultClass::CONFIGURATION;
}

bool critical(wire::Finding::Reader x) {
  return x.getSeverity() == wire::Severity::CRITICAL;
}

std::string unchanged_evidence(wire::TurnFacts::Reader facts) {
  return "the code is " + text_of(facts.getUnchanged()) +
         ", but for comments, spaces, names and settings of libraries";
}

/// Says whether an answer is a copy of what others wrote, in the words of shown_code: to hand the
/// task's own code back is to give up, to hand in an example is to pass its work off.
bool is_borrowed(std::string_view what) {
  return what == "an example of the prompt" || what == "what a tool found" ||
         what == "what was shown";
}

class judge_of_turn {
public:
  judge_of_turn(wire::TurnFacts::Reader facts, const governance_config& config)
      : facts_(facts), parsed_(facts.getParsed()), build_(facts.getBuild()),
        evaluation_(facts.getEvaluation()), config_(config) {}

  judgement run() {
    if (auto ours = our_fault()) return left_out(std::move(*ours));
    judge_format();
    judge_build();
    judge_evaluation();
    judge_integrity();
    judge_memory_safety();
    judge_performance();
    judge_originality();
    if (!accepted() && result_.fault.cls == FaultClass::NONE)
      result_.fault = fault_of(facts_.getFault());
    result_.outcome = accepted() ? wire::Outcome::ACCEPTED : wire::Outcome::REJECTED;
    result_.category = accepted() ? category_of_accepted() : result_.fault.category;
    result_.unpaid = result_.category == not_timed &&
                     evaluation_.getTiming().getNotTimed() == wire::NotTimed::MACHINE;
    if (!result_.unpaid) pay();
    return std::move(result_);
  }

private:
  // The profile is no part of the verdict, so its fault is no fault of the turn.
  std::optional<judged_fault> our_fault() const {
    for (auto x : {facts_.getFault(), build_.getFault(), evaluation_.getFault()})
      if (is_ours(x)) return fault_of(x);
    if (facts_.getFault().getClass() != FaultClass::NONE || !parsed_.getOk()) return std::nullopt;
    auto missing = [](std::string what) {
      return judged_fault{FaultClass::INFRASTRUCTURE,
                          "incomplete_facts",
                          "failed to judge a turn: " + std::move(what),
                          {}};
    };
    if (!build_.getCompiled() && !explained(build_))
      return missing("there is neither a build nor a reason why not");
    if (build_.getCompiled() && !evaluation_ran())
      return missing("there is neither an evaluation nor a reason why not");
    return std::nullopt;
  }

  static bool explained(wire::BuildResult::Reader x) {
    return x.getFault().getClass() != FaultClass::NONE || x.getDiagnostics().size() > 0 ||
           x.getLog().size() > 0;
  }

  bool evaluation_ran() const {
    return evaluation_.getCorrect() || evaluation_.getCases().size() > 0 ||
           evaluation_.getFindings().size() > 0 ||
           evaluation_.getFault().getClass() != FaultClass::NONE;
  }

  judgement left_out(judged_fault ours) {
    for (auto& x : result_.gates)
      x = {GateStatus::BLOCKED, "the turn could not be judged: " + ours.category};
    result_.outcome = wire::Outcome::INFRASTRUCTURE;
    result_.category = ours.category.empty() ? "infrastructure" : ours.category;
    result_.fault = std::move(ours);
    return std::move(result_);
  }

  bool passed(gate_index i) const { return result_.gates[i].status == GateStatus::PASS; }
  bool failed(gate_index i) const { return result_.gates[i].status == GateStatus::FAIL; }
  bool accepted() const {
    return passed(format) && passed(build_gate) && passed(correctness) && passed(determinism) &&
           passed(integrity) && !(failed(memory_safety) && config_.reward.memory_safety_rejects);
  }

  // A copy is no work of the policy, however fast it is.
  std::string category_of_accepted() const {
    if (failed(originality)) return std::string{unchanged_category};
    if (evaluation_.getTiming().getNotTimed() != wire::NotTimed::NO) return not_timed;
    return failed(performance) ? "slower" : "success";
  }

  void pass(gate_index i, std::string reason = {}) {
    result_.gates[i] = {GateStatus::PASS, std::move(reason)};
  }

  // The first failing stage is the turn's fault; a later one keeps its own reason.
  void fail(gate_index i, judged_fault fault) {
    result_.gates[i] = {GateStatus::FAIL, fault.message};
    if (result_.fault.cls == FaultClass::NONE) result_.fault = std::move(fault);
  }

  void block(gate_index i) {
    for (size_t before = 0; before < i; ++before)
      if (failed(static_cast<gate_index>(before))) {
        result_.gates[i] = {GateStatus::BLOCKED, fmt::format("{} failed", gate_names[before])};
        return;
      }
    result_.gates[i] = {GateStatus::NOT_RUN, "it was not run"};
  }

  void judge_format() {
    auto turn = facts_.getFault();
    if (turn.getClass() == FaultClass::POLICY || !parsed_.getOk()) {
      auto problems = parsed_.getProblems();
      auto said = problems.size() > 0 ? text_of(problems[0]) : "no kernel could be taken";
      return fail(format, fault_or(turn, FaultClass::POLICY, "format_error", std::move(said)));
    }
    if (is(facts_.getVerb(), "diagnose") && parsed_.getDiagnosis().size() == 0)
      return fail(format, {FaultClass::POLICY, "format_error", "there is no <DIAGNOSIS>", {}});
    auto problems = parsed_.getProblems();
    pass(format, problems.size() > 0 ? text_of(problems[0]) : std::string{});
  }

  void judge_build() {
    if (!parsed_.getOk()) return block(build_gate);
    if (build_.getCompiled()) return pass(build_gate);
    if (!explained(build_)) return block(build_gate);
    fail(build_gate, fault_or(build_.getFault(), FaultClass::CANDIDATE, "compile_error",
                              "the compiler refused the kernel"));
  }

  void judge_evaluation() {
    if (!build_.getCompiled() || !evaluation_ran()) {
      block(correctness);
      return block(determinism);
    }
    if (!evaluation_.getCorrect())
      fail(correctness,
           fault_or(evaluation_.getFault(), FaultClass::CANDIDATE, "wrong_result", wrong_cases()));
    else if (facts_.getFault().getClass() == FaultClass::CANDIDATE)
      fail(correctness, fault_of(facts_.getFault()));
    else if (is(facts_.getVerb(), "diagnose") && !facts_.getDiagnosisRight())
      fail(correctness, {FaultClass::CANDIDATE,
                         "diagnosis_wrong",
                         "the kernel is right, the diagnosis is not",
                         {}});
    else if (auto wrong = wrong_statements(); wrong > 0)
      fail(correctness, {FaultClass::CANDIDATE, "evidence_wrong", statements_message(wrong), {}});
    else if (facts_.getSameStrategy().size() > 0)
      fail(correctness, {FaultClass::CANDIDATE,
                         "not_reformulated",
                         "the results are right, and it computes as the starter does: " +
                             text_of(facts_.getSameStrategy()),
                         {}});
    else
      pass(correctness);
    if (!evaluation_.getCorrect()) return block(determinism);
    if (evaluation_.getDeterministic()) return pass(determinism);
    fail(
        determinism,
        {FaultClass::CANDIDATE, "not_deterministic", "the same inputs gave different results", {}});
  }

  unsigned wrong_statements() const {
    unsigned wrong = 0;
    if (is(facts_.getVerb(), "diagnose"))
      for (auto x : facts_.getEvidence()) wrong += !x.getRight();
    return wrong;
  }

  // What is hidden is not named: a policy reads this.
  std::string statements_message(unsigned wrong) const {
    unsigned said = 0, wrong_said = 0;
    for (auto x : facts_.getEvidence()) {
      said += !x.getHidden();
      wrong_said += !x.getHidden() && !x.getRight();
    }
    if (wrong_said == 0) return "the diagnosis is right, and what was measured does not fit it";
    return fmt::format("the diagnosis is right; of what was said of {} counters {} {} wrong{}",
                       said, wrong_said, wrong_said == 1 ? "is" : "are",
                       wrong > wrong_said ? ", and what was measured does not fit, either" : "");
  }

  std::string wrong_cases() const {
    auto cases = evaluation_.getCases();
    for (auto x : cases)
      if (!x.getPass())
        return fmt::format("the results of case {} are wrong", text_of(x.getName()));
    return "the results are wrong";
  }

  // A critical finding explains a wrong result or a crash better than these explain themselves:
  // it takes over the category that the evaluation gave.
  void judge_integrity() {
    if (!build_.getCompiled() || !evaluation_ran()) return block(integrity);
    for (auto x : evaluation_.getFindings()) {
      if (!critical(x)) continue;
      if (!failed(format)) result_.fault = {};
      return fail(integrity, {FaultClass::CANDIDATE,
                              "integrity",
                              text_of(x.getRule()) + ": " + text_of(x.getEvidence()),
                              {}});
    }
    pass(integrity);
  }

  // Only of code with right results: a wrong result has a fault that says more.
  void judge_memory_safety() {
    if (!accepted()) return block(memory_safety);
    auto memory = evaluation_.getMemory();
    for (auto x : memory.getFindings()) {
      if (x.getSeverity() == wire::Severity::INFO) continue;
      auto reason = text_of(x.getRule()) + ": " + text_of(x.getEvidence());
      if (config_.reward.memory_safety_rejects)
        return fail(memory_safety, {FaultClass::CANDIDATE, "memory_safety", std::move(reason), {}});
      result_.gates[memory_safety] = {GateStatus::FAIL, std::move(reason)};
      return;
    }
    auto problems = memory.getProblems();
    // Of complete checks: the backend cannot check the rest.
    if (memory.getComplete())
      result_.gates[memory_safety] = {GateStatus::PASS,
                                      problems.size() > 0 ? text_of(problems[0]) : std::string{}};
    else
      result_.gates[memory_safety] = {GateStatus::NOT_RUN,
                                      problems.size() > 0
                                          ? text_of(problems[0])
                                          : "sanitizers did not look at it (evaluation.sanitize)"};
  }

  void judge_performance() {
    if (!accepted()) return block(performance);
    auto timing = evaluation_.getTiming();
    auto& gate = result_.gates[performance];
    if (!timing.getMeasured()) {
      gate = {GateStatus::NOT_RUN,
              timing.getNote().size() > 0 ? text_of(timing.getNote()) : "it was not timed"};
      return;
    }
    auto low = timing.getSpeedup().getLow();
    if (!(low >= config_.minimum_speedup))
      gate = {GateStatus::FAIL,
              fmt::format("lower bound {:.3g}x; {:.3g}x required", low, config_.minimum_speedup)};
    else if (low < config_.significant_speedup)
      gate = {GateStatus::PASS,
              fmt::format("lower bound {:.3g}x, which is not yet significant", low)};
    else
      gate = {GateStatus::PASS, fmt::format("lower bound {:.3g}x", low)};
    // Else a part of 0 would look like the kernel's doing.
    if (config_.reward.sol != 0 && !has_sol_scale(timing.getReferenceMs(), timing.getRooflineMs()))
      gate.reason += "; no roofline below the baseline is known here, so the part sol is 0";
  }

  // A copy of the task's own code earns no speed, one of an example nothing; neither is a cheat.
  void judge_originality() {
    if (!accepted()) return block(originality);
    auto& gate = result_.gates[originality];
    if (facts_.getUnchanged().size() == 0)
      gate = {GateStatus::PASS, {}};
    else
      gate = {GateStatus::FAIL, unchanged_evidence(facts_)};
  }

  void pay() {
    reward_facts x;
    x.format = passed(format);
    x.build = passed(build_gate);
    x.correct = passed(correctness);
    x.deterministic = passed(determinism);
    x.accepted = accepted();
    x.unchanged = failed(originality);
    x.borrowed = is_borrowed(text_of(facts_.getUnchanged()));
    x.fast = passed(performance) && !x.unchanged;
    auto verb = text_of(facts_.getVerb());
    x.success = is_success(verb, x.accepted, !x.unchanged, x.fast);
    x.critical = failed(integrity);
    x.diagnosis = is(facts_.getVerb(), "diagnose") && parsed_.getDiagnosis().size() > 0 &&
                  facts_.getDiagnosisRight();
    auto cases = evaluation_.getCases();
    unsigned right = 0;
    for (auto c : cases) right += c.getPass();
    if (evaluation_.getCorrect())
      // Right results alone are what the starter of a task of another verb has, too.
      x.share = passed(correctness) ? 1 : 0;
    else if (auto all = std::max<unsigned>(cases.size(), evaluation_.getCaseCount()); all > 0)
      x.share = static_cast<double>(right) / all; // an early end fails the cases left
    auto timing = evaluation_.getTiming();
    if (timing.getMeasured()) x.speedup_low = timing.getSpeedup().getLow();
    x.baseline_ms = timing.getReferenceMs();
    x.roofline_ms = timing.getRooflineMs();
    x.thought_bytes = parsed_.getThought().size();
    x.kernel_bytes = parsed_.getKernel().size();
    result_.reward = reward_of(x, config_.reward);
  }

  wire::TurnFacts::Reader facts_;
  wire::ParsedCompletion::Reader parsed_;
  wire::BuildResult::Reader build_;
  wire::EvaluateResult::Reader evaluation_;
  const governance_config& config_;
  judgement result_;
};

void write(wire::Fault::Builder out, const judged_fault& x) {
  out.setClass(x.cls);
  if (x.cls == FaultClass::NONE) return;
  out.setCategory(x.category);
  out.setMessage(x.message);
  out.setHint(x.hint);
}

void set_findings(wire::Verdict::Builder out, wire::TurnFacts::Reader facts) {
  auto from = facts.getEvaluation().getFindings();
  auto memory = facts.getEvaluation().getMemory().getFindings();
  bool copied = facts.getUnchanged().size() > 0;
  auto count = from.size() + memory.size();
  if (count == 0 && !copied) return;
  auto into = out.initFindings(count + (copied ? 1 : 0));
  for (unsigned i = 0; i < from.size(); ++i) into.setWithCaveats(i, from[i]);
  for (unsigned i = 0; i < memory.size(); ++i) into.setWithCaveats(from.size() + i, memory[i]);
  if (!copied) return;
  into[count].setRule(unchanged_category.data());
  into[count].setSeverity(wire::Severity::WARNING);
  into[count].setEvidence(unchanged_evidence(facts));
}

} // namespace

Message<wire::Verdict> judge(wire::TurnFacts::Reader facts, const governance_config& config) {
  auto x = judge_of_turn{facts, config}.run();
  return build<wire::Verdict>([&](wire::Verdict::Builder out) {
    out.setOutcome(x.outcome);
    auto gates = out.initGates(static_cast<unsigned>(x.gates.size()));
    for (unsigned i = 0; i < gates.size(); ++i) {
      gates[i].setName(gate_names[i]);
      gates[i].setStatus(x.gates[i].status);
      if (!x.gates[i].reason.empty()) gates[i].setReason(x.gates[i].reason);
    }
    out.setCategory(x.category);
    write(out.initFault(), x.fault);
    set_findings(out, facts);
    out.setUnpaid(x.unpaid);
    // A reader that overlooks these two fields must not find a reward of 0.
    out.setReward(std::numeric_limits<double>::quiet_NaN());
    if (x.outcome == wire::Outcome::INFRASTRUCTURE || x.unpaid) return;
    out.setReward(x.reward.total);
    auto parts = out.initComponents(static_cast<unsigned>(x.reward.parts.size()));
    for (unsigned i = 0; i < parts.size(); ++i) {
      parts[i].setName(x.reward.parts[i].name);
      parts[i].setValue(x.reward.parts[i].value);
      parts[i].setWeight(x.reward.parts[i].weight);
    }
  });
}

} // namespace kernelmill

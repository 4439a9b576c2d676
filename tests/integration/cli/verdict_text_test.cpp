#include "launch/judging/verdict_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/message.hpp"

namespace kernelmill::commands {

namespace verdict_text_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string told(wire::Outcome outcome, const char* category, const char* gate) {
  auto facts = build<wire::TurnFacts>([](wire::TurnFacts::Builder x) { x.setTask("native/x"); });
  auto verdict = build<wire::Verdict>([&](wire::Verdict::Builder x) {
    x.setOutcome(outcome);
    x.setCategory(category);
    x.setReward(1.25);
    auto gates = x.initGates(1);
    gates[0].setName(gate);
    gates[0].setStatus(wire::GateStatus::FAIL);
    gates[0].setReason("lower bound 0.9x; 1x required");
  });
  return verdict_text(*facts.open(), *verdict.open(), false);
}

TEST(verdict_text, a_slow_candidate_that_is_accepted_fails_nothing) {
  EXPECT_THAT(told(wire::Outcome::ACCEPTED, "slower", "performance"),
              AllOf(HasSubstr("  slower   performance   lower bound 0.9x"),
                    HasSubstr("stays accepted"), Not(HasSubstr("fail")),
                    HasSubstr("\naccepted, slower than asked for, reward 1.250\n")));
}

TEST(verdict_text, times_are_held_against_the_baseline) {
  auto facts = build<wire::TurnFacts>([](wire::TurnFacts::Builder x) {
    auto timing = x.initEvaluation().initTiming();
    timing.setMeasured(true);
    timing.setCandidateMs(1);
    timing.setReferenceMs(2);
  });
  auto verdict = build<wire::Verdict>([](wire::Verdict::Builder) {});
  EXPECT_THAT(verdict_text(*facts.open(), *verdict.open(), false),
              HasSubstr("1 ms against 2 ms of the baseline"));
}

TEST(verdict_text, a_gate_that_rejects_fails) {
  EXPECT_THAT(told(wire::Outcome::REJECTED, "wrong_result", "correctness"),
              AllOf(HasSubstr("  fail     correctness"), Not(HasSubstr("stays accepted")),
                    HasSubstr("\nrejected, reward 1.250\n")));
}

TEST(verdict_text, says_a_reason_once) {
  const char* reason = "the candidate crashed with SIGSEGV";
  auto facts = build<wire::TurnFacts>([&](wire::TurnFacts::Builder x) {
    x.initParsed().initProblems(1).set(0, reason);
    auto cases = x.initEvaluation().initCases(2);
    cases[0].setFirstBad(reason);
    cases[1].setFirstBad("y[0]: got 1, want 2");
  });
  auto verdict_for = [&](const char* message) {
    return build<wire::Verdict>([&](wire::Verdict::Builder x) {
      auto gates = x.initGates(2);
      for (auto gate : gates) gate.setStatus(wire::GateStatus::FAIL);
      gates[0].setReason(reason);
      gates[1].setReason("one_row: it skipped rows");
      auto finding = x.initFindings(1)[0];
      finding.setRule("one_row");
      finding.setSeverity(wire::Severity::CRITICAL);
      finding.setEvidence("it skipped rows");
      auto fault = x.initFault();
      fault.setClass(wire::FaultClass::CANDIDATE);
      fault.setCategory("crashed");
      fault.setMessage(message);
      fault.setHint("check every index");
    });
  };
  auto text = verdict_text(*facts.open(), *verdict_for(reason).open(), false);
  EXPECT_EQ(text.find(reason), text.rfind(reason)) << text;
  EXPECT_THAT(text,
              AllOf(HasSubstr("\ncrashed\nnext: check every index\n"),
                    HasSubstr("\ncritical one_row\n"), HasSubstr("FAIL y[0]: got 1, want 2")));
  EXPECT_THAT(verdict_text(*facts.open(), *verdict_for("by another").open(), false),
              HasSubstr("\ncrashed: by another\n"));
}

} // namespace verdict_text_test

} // namespace kernelmill::commands

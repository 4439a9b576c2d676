#include "launch/judging/verdict_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/message.hpp"

namespace kernelmill::commands {

namespace {

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
    gates[0].setReason("at least 0.9x is shown, 1x is asked for");
  });
  return verdict_text(*facts.open(), *verdict.open(), false);
}

TEST(verdict_text, a_slow_candidate_that_is_accepted_fails_nothing) {
  EXPECT_THAT(told(wire::Outcome::ACCEPTED, "slower", "performance"),
              AllOf(HasSubstr("  slower   performance  at least 0.9x is shown"),
                    HasSubstr("this rejects nothing"), Not(HasSubstr("fail")),
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
              AllOf(HasSubstr("  fail     correctness"), Not(HasSubstr("rejects nothing")),
                    HasSubstr("\nrejected, reward 1.250\n")));
}

} // namespace

} // namespace kernelmill::commands

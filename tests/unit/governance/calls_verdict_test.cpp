#include "actors/governance/calls_verdict.hpp"

#include <cmath>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/governance/facts.hpp"

namespace kernelmill::fixtures {
namespace calls_verdict_test {

std::map<std::string, double> parts_of(wire::Verdict::Reader x) {
  std::map<std::string, double> result;
  for (auto part : x.getComponents())
    result[part.getName().cStr()] += part.getValue() * part.getWeight();
  return result;
}

/// Two cheats that measurements found, and a cost of calls.
struct tried {
  Message<wire::Verdict> measured = build<wire::Verdict>([](wire::Verdict::Builder x) {
    auto found = x.initFindings(3);
    for (auto one : found) one.setSeverity(wire::Severity::CRITICAL);
    found[1].setSeverity(wire::Severity::WARNING);
    found[0].setRule("late_write");
    found[2].setRule("decoy_kernel");
  });
  Message<wire::Verdict>::view view = measured.open();
  calls_effect effect;

  tried() {
    add_critical(effect, *view);
    effect.shaping.push_back({"tool_cost", -0.05, 1});
  }
};

reward_config penalized() {
  auto result = *reward_preset("kevin");
  result.integrity_penalty = 0.5;
  return result;
}

Message<wire::Verdict> good_verdict(const reward_config& weights) {
  auto message = facts(fill_good);
  auto view = message.open();
  return judge(*view, {.reward = weights});
}

TEST(open_verdict, of_calls_that_neither_earn_nor_cost_has_no_parts_and_pays_0) {
  auto verdict = open_verdict({}, penalized());
  auto x = verdict.open();
  EXPECT_EQ(x->getOutcome(), wire::Outcome::OPEN);
  EXPECT_EQ(x->getReward(), 0);
  EXPECT_EQ(x->getComponents().size(), 0u);
}

TEST(open_verdict, a_cheat_that_was_tried_costs_once_a_turn) {
  tried calls;
  ASSERT_EQ(calls.effect.critical.size(), 2u) << "of the turn, without the warning";
  auto verdict = open_verdict(calls.effect, penalized());
  auto x = verdict.open();
  EXPECT_DOUBLE_EQ(x->getReward(), -0.55);
  EXPECT_THAT(parts_of(*x), testing::ElementsAre(testing::Pair("integrity", -0.5),
                                                 testing::Pair("tool_cost", -0.05)));
  EXPECT_EQ(x->getFindings().size(), 2u);
}

TEST(with_calls, adds_to_what_a_submission_earned) {
  tried calls;
  auto judged = good_verdict(penalized());
  auto verdict = with_calls(judged, calls.effect, penalized());
  auto before = judged.open(), after = verdict.open();
  EXPECT_DOUBLE_EQ(before->getReward(), 3.2);
  EXPECT_DOUBLE_EQ(after->getReward(), 3.2 - 0.5 - 0.05);
  EXPECT_EQ(parts_of(*after)["integrity"], -0.5);
  EXPECT_EQ(after->getOutcome(), wire::Outcome::ACCEPTED) << "what was submitted is honest";
  EXPECT_EQ(after->getGates().size(), before->getGates().size());
  EXPECT_EQ(after->getFindings().size(), 2u);
}

TEST(with_calls, a_cheat_that_was_submitted_too_is_paid_for_once) {
  auto message = facts([](wire::TurnFacts::Builder x) {
    fill_good(x);
    add_finding(x, "late_write", wire::Severity::CRITICAL);
  });
  auto view = message.open();
  auto judged = judge(*view, {.reward = penalized()});
  tried calls;
  auto verdict = with_calls(judged, calls.effect, penalized());
  EXPECT_DOUBLE_EQ(verdict.open()->getReward(), -0.55);
}

TEST(with_calls, nothing_to_add_and_no_reward_leave_a_verdict_as_it_is) {
  auto judged = good_verdict(penalized());
  EXPECT_EQ(with_calls(judged, {}, penalized()).data(), judged.data());
  auto message = facts([](wire::TurnFacts::Builder x) {
    fill_good(x);
    x.initFault().setClass(wire::FaultClass::INFRASTRUCTURE);
  });
  auto view = message.open();
  auto lost = judge(*view, {});
  tried calls;
  EXPECT_TRUE(std::isnan(with_calls(lost, calls.effect, penalized()).open()->getReward()));
}

} // namespace calls_verdict_test
} // namespace kernelmill::fixtures

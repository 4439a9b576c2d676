// When a run calls a hook.

#include <capnp/message.h>
#include <gtest/gtest.h>

#include "launch/server/trackers/hook_rules.hpp"

namespace kernelmill::trackers {
namespace hook_rules_test {

struct hook_rules_test : testing::Test {
  void turn(wire::Outcome outcome, unsigned findings = 0) {
    capnp::MallocMessageBuilder builder;
    auto verdict = builder.initRoot<wire::Record>().initTurn().initVerdict();
    verdict.setOutcome(outcome);
    verdict.initFindings(findings);
    rules.note(builder.getRoot<wire::Record>().asReader(), now);
  }

  std::vector<std::string> told() {
    std::vector<std::string> result;
    for (const auto& x : rules.take()) result.push_back(x["event"]);
    return result;
  }

  using events = std::vector<std::string>;
  double now = 1000;
  hook_rules rules{hooks_section{}, "first", "runs/first", now};
};

TEST_F(hook_rules_test, findings_above_their_share_are_told_once_until_they_were_rare_again) {
  for (int i = 0; i < 31; ++i) turn(wire::Outcome::REJECTED, 1);
  EXPECT_EQ(told(), events{}) << "of fewer turns than 32, a share says nothing";
  turn(wire::Outcome::REJECTED, 1);
  EXPECT_EQ(told(), events{"integrity_findings"});
  for (int i = 0; i < 100; ++i) turn(wire::Outcome::REJECTED, 1);
  EXPECT_EQ(told(), events{}) << "once";
  for (int i = 0; i < 3000; ++i) turn(wire::Outcome::ACCEPTED);
  for (int i = 0; i < 300; ++i) turn(wire::Outcome::REJECTED, 1);
  EXPECT_EQ(told(), events{"integrity_findings"});
}

TEST_F(hook_rules_test, a_standstill_is_told_once_and_again_after_progress) {
  rules.look_at_clock(now += 29 * 60);
  EXPECT_EQ(told(), events{});
  rules.look_at_clock(now += 2 * 60);
  rules.look_at_clock(now += 60 * 60);
  EXPECT_EQ(told(), events{"no_progress"});
  turn(wire::Outcome::ACCEPTED);
  rules.look_at_clock(now += 31 * 60);
  EXPECT_EQ(told(), events{"no_progress"});
}

TEST_F(hook_rules_test, a_lost_node_is_named_and_a_drained_one_is_not_told) {
  rules.look_at_nodes({"a", "b", "c"}, 2, now);
  EXPECT_EQ(told(), events{}) << "those were lost before the run began";
  rules.look_at_nodes({"a", "b"}, 2, now); // c was drained
  EXPECT_EQ(told(), events{});
  rules.look_at_nodes({"b"}, 3, now);
  auto all = rules.take();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["event"], "node_lost");
  EXPECT_EQ(all[0]["node"], "a");
  EXPECT_EQ(all[0]["run"], "first");
}

TEST_F(hook_rules_test, only_the_events_that_are_wanted_are_told) {
  hooks_section wanted;
  wanted.on = {"node_lost"};
  rules = hook_rules{wanted, "first", "runs/first", now};
  rules.look_at_clock(now += 24 * 3600);
  EXPECT_EQ(told(), events{});
}

} // namespace hook_rules_test
} // namespace kernelmill::trackers

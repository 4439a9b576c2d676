#include "launch/judging/rejudging.hpp"

#include <gtest/gtest.h>

#include "actors/governance/reward.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill {
namespace rejudging_test {

TEST(rejudging, keeps_the_verdict_of_a_turn_that_asked_for_none) {
  using namespace fixtures;
  stored_group group;
  group.episodes.push_back({0,
                            {make_tool_turn(0, 0, 0, "c1", "c0", "int x;"), make_turn(0, 0, 1)},
                            build<wire::Record>([](wire::Record::Builder x) {
                              auto end = make_episode(0, 0, {0, 0.3});
                              x.setEpisode(end.open()->getEpisode());
                              x.getEpisode().setTerminalState("success");
                              x.getEpisode().setSteps(3);
                            })});
  rejudging_counts counts;
  auto found = rejudge(group, {}, counts);
  ASSERT_TRUE(found);
  auto& records = *found;
  ASSERT_EQ(records.size(), 3u);
  auto first = records[0].open();
  EXPECT_EQ(first->getTurn().getVerdict().getOutcome(), wire::Outcome::OPEN);
  EXPECT_STREQ(first->getTurn().getVerdict().getCategory().cStr(), "open");
  EXPECT_EQ(counts.turns, 1u) << "it was not judged, so it is not judged again";
  auto end = records[2].open();
  EXPECT_EQ(end->getEpisode().getSteps(), 3u);
  // The fixture has no gates, so its second turn does not pass any more.
  EXPECT_STREQ(end->getEpisode().getTerminalState().cStr(), "failure");
}

TEST(rejudging, lets_calls_earn_by_other_rules) {
  using namespace fixtures;
  stored_group group;
  group.episodes.push_back({0, {make_tool_turn(0, 0, 0, "c1", "c0", "int x;")}, std::nullopt});
  scoring_rules rules;
  rules.judge.reward = *reward_preset("optimize_v1");
  rejudging_counts counts;
  auto records = rejudge(group, rules, counts);
  ASSERT_TRUE(records);
  auto turn = records->front().open();
  EXPECT_DOUBLE_EQ(turn->getTurn().getVerdict().getReward(), -0.05)
      << "inspect and patch_candidate";
}

TEST(rejudging, reads_an_answer_where_the_rules_pay_for_its_thought) {
  using namespace fixtures;
  stored_group group;
  group.episodes.push_back({0, {make_turn(0, 0, 0)}, std::nullopt});
  scoring_rules rules;
  rejudging_counts counts;
  uint32_t reads = 0;
  answer_reader read = [&](wire::TurnRecord::Reader) -> expected<answer_texts> {
    ++reads;
    return answer_texts{"<think>" + std::string(3000, 'x') + "</think>", "int x;"};
  };
  ASSERT_TRUE(rejudge(group, rules, counts, read));
  EXPECT_EQ(reads, 0u);
  rules.judge.reward.thinking = 1;
  auto records = rejudge(group, rules, counts, read);
  ASSERT_TRUE(records);
  EXPECT_EQ(reads, 1u);
  auto view = records->front().open();
  double value = 0;
  for (auto part : view->getTurn().getVerdict().getComponents())
    if (part.getName() == "thinking") value = part.getValue();
  EXPECT_DOUBLE_EQ(value, 0.85);
}

} // namespace rejudging_test
} // namespace kernelmill

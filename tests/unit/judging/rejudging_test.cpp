#include "launch/judging/rejudging.hpp"

#include <gtest/gtest.h>

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
  auto records = rejudge(group, {}, counts);
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

} // namespace rejudging_test
} // namespace kernelmill

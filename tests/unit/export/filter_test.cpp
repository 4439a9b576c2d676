#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "material.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::exports {
namespace filter_test {

using namespace row_fixtures;
using ::testing::ElementsAre;

const episode& first() {
  static const auto all = make_group();
  return all.episodes[0];
}

TEST(filter, takes_turns_by_outcome_reward_and_kind) {
  filter f;
  EXPECT_THAT(turns_taken(f, first()), ElementsAre(0, 1));
  f.accepted = true;
  EXPECT_THAT(turns_taken(f, first()), ElementsAre(1));
  f = {};
  f.min_reward = 1.25;
  EXPECT_THAT(turns_taken(f, first()), ElementsAre(1));
  f = {};
  f.transitions = {"synthesized"};
  EXPECT_THAT(turns_taken(f, first()), ElementsAre(0));
}

TEST(filter, takes_the_best_of_the_turns_that_are_left) {
  filter f;
  f.best_of_episode = true;
  EXPECT_THAT(turns_taken(f, first()), ElementsAre(1));
  f.transitions = {"synthesized"};
  EXPECT_THAT(turns_taken(f, first()), ElementsAre(0));
}

TEST(filter, puts_a_right_answer_without_a_time_behind_a_paid_one) {
  auto e = make_episode(0, 0.0, {not_timed(make_turn(0, 0, {})), make_turn(1, 0.1, {})});
  filter f;
  f.best_of_episode = true;
  EXPECT_THAT(turns_taken(f, e), ElementsAre(1));
  f.min_reward = 0;
  f.best_of_episode = false;
  EXPECT_THAT(turns_taken(f, e), ElementsAre(1)) << "no reward is not 0";
}

TEST(filter, takes_groups_by_split_and_verb) {
  auto x = make_group();
  filter f;
  EXPECT_TRUE(takes(f, x.split, x.verb));
  f.splits = {"dev"};
  EXPECT_FALSE(takes(f, x.split, x.verb));
  f = {};
  f.verbs = {"debug", "optimize"};
  EXPECT_TRUE(takes(f, x.split, x.verb));
}

// These sides are frozen: a task that changed sides would leak from train into dev.
TEST(split, of_a_task_stays_what_it_is) {
  EXPECT_EQ(split_of("native/row_sum", "dev"), "dev");
  std::string sides;
  for (int i = 1; i <= 40; ++i)
    sides += split_of("kernelbench/level1/" + std::to_string(i), "") == "dev" ? "d" : "t";
  EXPECT_EQ(sides, "ttttttttttttttttttdttttttttttttttttttttt");
}

} // namespace filter_test
} // namespace kernelmill::exports

// Turns that a fork shares with its origin: context in every form, credit in none.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "material.hpp"

namespace kernelmill::exports {
namespace fork_rows_test {

using namespace row_fixtures;
using ::testing::ElementsAre;

constexpr auto rejected = wire::Outcome::REJECTED;

/// Two episodes that share t0, which is wrong and worth 7 where it comes from; their own turns go
/// on from its tokens.
group fork() {
  auto x = make_group();
  auto first = make_turn(0, 7, {1, 2, 3});
  x.episodes = {make_episode(0, 1.0, {first, make_turn(1, 1.25, {1, 2, 3, 10, 11, 4})}),
                make_episode(1, -1.0, {first, make_turn(1, 0, {1, 2, 3, 10, 11, 4}, rejected)})};
  x.episodes[0].best_turn = x.episodes[1].best_turn = 0; // as the run has it: 7 is the most
  share_first(x, 1);
  return x;
}

std::vector<std::string> ids(const std::vector<row>& rows) {
  std::vector<std::string> result;
  for (const auto& x : rows) result.push_back(x["id"]);
  return result;
}

TEST(forks, in_sft_have_rows_of_their_own_turns_alone) {
  auto x = rows_of(form::sft, fork());
  EXPECT_THAT(ids(x.rows), ElementsAre("first/g3.e0.t1"));
  const auto& messages = x.rows[0]["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[1]["weight"], 0) << "the shared answer is context";
  EXPECT_EQ(messages[3]["weight"], 1);
}

TEST(forks, in_trajectories_say_which_turns_are_shared) {
  auto x = rows_of(form::trajectories, fork()).rows;
  ASSERT_EQ(x.size(), 2u);
  const auto& turns = x[0]["turns"];
  EXPECT_EQ(turns[0]["shared"], true);
  EXPECT_TRUE(turns[0]["reward"].is_null());
  EXPECT_TRUE(turns[0]["return"].is_null());
  EXPECT_EQ(turns[1]["shared"], false);
  EXPECT_EQ(turns[1]["reward"], 1.25);
}

TEST(forks, are_filtered_by_the_best_turn_that_is_their_own) {
  filter accepted;
  accepted.accepted = true;
  EXPECT_THAT(ids(rows_of(form::trajectories, fork(), accepted).rows), ElementsAre("first/g3.e0"));
}

TEST(forks, in_rl_mask_what_is_shared) {
  auto x = rows_of(form::rl, fork()).rows.at(0)["episodes"][0];
  EXPECT_EQ(x["turns"][0]["mask"], 0);
  EXPECT_TRUE(x["turns"][0]["reward"].is_null());
  EXPECT_EQ(x["turns"][1]["mask"], 1);
  ASSERT_EQ(x["sequences"].size(), 1u);
  EXPECT_EQ(x["sequences"][0]["prompt_length"], 6);
  EXPECT_EQ(x["sequences"][0]["mask"], row({0, 0, 0, 0, 0, 0, 1, 1}));
}

TEST(forks, in_preference_compare_their_first_own_answers) {
  auto x = rows_of(form::preference, fork()).rows;
  ASSERT_EQ(x.size(), 1u);
  EXPECT_EQ(x[0]["chosen_answer"]["id"], "first/g3.e0.t1");
  EXPECT_EQ(x[0]["rejected_answer"]["id"], "first/g3.e1.t1");
  EXPECT_EQ(x[0]["prompt"].size(), 3u) << "the task, the shared answer, its feedback";
  EXPECT_EQ(x[0]["margin"], 1.25);
}

TEST(forks, in_rows_of_trainers_have_the_shared_turns_in_the_prompt) {
  auto trl = rows_of(form::trl, fork()).rows.at(0);
  EXPECT_EQ(trl["prompt"].size(), 3u);
  EXPECT_EQ(trl["completion"].size(), 1u);
  EXPECT_EQ(trl["metrics"]["reward"], 1.25);
  EXPECT_EQ(trl["metrics"]["turns"], 1.0);
  auto verl = rows_of(form::verl, fork()).rows.at(0);
  EXPECT_EQ(verl["prompt_ids"].size(), 6u);
  EXPECT_EQ(verl["response_ids"], row({20, 21}));
  EXPECT_EQ(verl["response_mask"], row({1, 1}));
  EXPECT_EQ(verl["reward_score"], 1.25);
  EXPECT_EQ(verl["extra_fields"]["turn_scores"], row({1.25}));
  auto skyrl = rows_of(form::skyrl, fork()).rows.at(0);
  EXPECT_EQ(skyrl["rewards"], row({1.25, 0.0}));
  EXPECT_EQ(skyrl["response_ids"][0].size(), 2u);
  auto prime = rows_of(form::prime_rl, fork()).rows.at(0);
  EXPECT_EQ(prime["mask"], row({false, false, false, false, false, false, true, true}));
  auto gym = rows_of(form::nemo_gym, fork()).rows.at(0);
  EXPECT_EQ(gym["reward"], 1.25);
  EXPECT_EQ(gym["response"]["output"].size(), 1u);
  EXPECT_EQ(gym["responses_create_params"]["input"].size(), 3u);
  auto megatron = rows_of(form::megatron, fork()).rows.at(0);
  EXPECT_EQ(megatron["rollouts"][0]["trajectory"].size(), 1u);
  EXPECT_EQ(megatron["rollouts"][0]["reward"], 1.25);
}

TEST(forks, whose_own_turns_are_lost_have_no_rows_of_trainers) {
  auto x = fork();
  for (auto& e : x.episodes) e.turns.pop_back();
  for (auto as : {form::trl, form::verl, form::skyrl, form::prime_rl, form::tinker, form::nemo_gym,
                  form::megatron, form::sft, form::preference})
    EXPECT_TRUE(rows_of(as, x).rows.empty()) << to_string(as);
}

} // namespace fork_rows_test
} // namespace kernelmill::exports

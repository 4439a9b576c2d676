#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "material.hpp"
#include "storage/export/rows/row_values.hpp"

namespace kernelmill::exports {
namespace rows_test {

using namespace row_fixtures;
using ::testing::ElementsAre;

constexpr auto rejected = wire::Outcome::REJECTED;

std::vector<std::string> ids(const made& x) {
  std::vector<std::string> result;
  for (const auto& r : x.rows) result.push_back(r["id"]);
  return result;
}

// -- sft ----------------------------------------------------------------------------------------

TEST(sft_rows, are_the_accepted_answers_of_episodes_that_may_be_learned_from) {
  auto x = rows_of(form::sft, make_group());
  EXPECT_THAT(ids(x), ElementsAre("first/g3.e0.t1", "first/g3.e1.t0", "first/g3.e1.t1"));
  EXPECT_EQ(x.without["episodes_of_other_governance"], 2u);
  EXPECT_EQ(x.without["turns_not_taken"], 1u);
}

TEST(sft_rows, hold_the_conversation_as_the_model_had_it_with_feedback_and_earlier_attempts) {
  auto x = rows_of(form::sft, make_group()).rows[0]["messages"];
  ASSERT_EQ(x.size(), 4u);
  EXPECT_EQ(x[0], row({{"role", "user"}, {"content", "Make it fast."}}));
  EXPECT_EQ(x[1]["weight"], 0);
  EXPECT_EQ(x[2]["content"], "compiled: yes, make it faster");
  EXPECT_EQ(x[3]["role"], "assistant");
  EXPECT_EQ(x[3]["weight"], 1);
}

TEST(sft_rows, hold_real_code) {
  auto x = rows_of(form::sft, make_group()).rows[0];
  EXPECT_EQ(x["code"], "int kernel_1_125;");
  EXPECT_NE(x["messages"][3]["content"].get<std::string>().find("int kernel_1_125;"),
            std::string::npos);
}

TEST(sft_rows, never_end_in_an_answer_that_the_infrastructure_lost) {
  filter all;
  all.governance = {"unusable"};
  EXPECT_THAT(ids(rows_of(form::sft, make_group(), all)), ElementsAre("first/g3.e3.t0"));
}

// -- preference ---------------------------------------------------------------------------------

group first_turns(std::vector<turn> turns) {
  auto x = make_group();
  x.episodes.clear();
  for (auto& t : turns)
    x.episodes.push_back(
        make_episode(static_cast<uint32_t>(x.episodes.size()), 0.0, {std::move(t)}));
  return x;
}

TEST(preference_rows, hold_the_best_against_the_worst_and_no_answer_twice) {
  auto x =
      rows_of(form::preference, first_turns({make_turn(0, 0.4, {}), make_turn(0, 0, {}, rejected),
                                             make_turn(0, 2, {}), make_turn(0, 1, {})}));
  ASSERT_EQ(x.rows.size(), 2u);
  EXPECT_EQ(x.rows[0]["chosen_answer"]["id"], "first/g3.e2.t0");
  EXPECT_EQ(x.rows[0]["rejected_answer"]["id"], "first/g3.e1.t0");
  EXPECT_EQ(x.rows[0]["margin"], 2.0);
  EXPECT_EQ(x.rows[1]["chosen_answer"]["id"], "first/g3.e3.t0");
  EXPECT_EQ(x.rows[1]["rejected_answer"]["id"], "first/g3.e0.t0");
}

TEST(preference_rows, do_not_pair_two_right_answers_whose_times_overlap) {
  auto x = rows_of(form::preference, first_turns({make_turn(0, 1, {}), make_turn(0, 1.1, {})}));
  EXPECT_TRUE(x.rows.empty());
  EXPECT_EQ(x.without["groups_without_contrast"], 1u);
}

TEST(preference_rows, never_choose_a_rejected_answer) {
  auto x = rows_of(form::preference,
                   first_turns({make_turn(0, 0.2, {}, rejected), make_turn(0, 0, {}, rejected)}));
  EXPECT_TRUE(x.rows.empty());
}

TEST(preference_rows, leave_out_what_has_no_reward) {
  auto x = rows_of(form::preference, first_turns({make_turn(0, 1, {}), lost(make_turn(0, 0, {})),
                                                  not_timed(make_turn(0, 0, {}))}));
  EXPECT_TRUE(x.rows.empty());
  EXPECT_EQ(x.without["infrastructure_turns"], 1u);
  EXPECT_EQ(x.without["not_timed_turns"], 1u);
}

TEST(preference_rows, compare_answers_to_one_prompt) {
  auto other = make_turn(0, 0, {}, rejected);
  other.added[0].content = "Make it fast. Here is an example.";
  auto x = rows_of(form::preference, first_turns({make_turn(0, 1, {}), other}));
  EXPECT_TRUE(x.rows.empty());
  EXPECT_EQ(x.without["other_prompts"], 1u);
}

// -- rl and trainers ----------------------------------------------------------------------------

TEST(rl_rows, have_null_for_the_reward_of_a_lost_turn_and_mask_its_tokens) {
  auto x = rows_of(form::rl, make_group()).rows.at(0);
  for (auto member : {2, 3}) {
    const auto& e = x["episodes"][member];
    EXPECT_TRUE(e["advantage"].is_null());
    EXPECT_TRUE(e["turns"][0]["reward"].is_null());
    EXPECT_TRUE(e["turns"][0]["return"].is_null());
    EXPECT_EQ(e["turns"][0]["mask"], 0);
    EXPECT_EQ(e["sequences"][0]["mask"], row({0, 0, 0, 0, 0}));
  }
}

TEST(rl_rows, say_where_the_tokens_of_each_turn_are) {
  auto x = rows_of(form::rl, make_group()).rows.at(0)["episodes"][0];
  ASSERT_EQ(x["sequences"].size(), 1u);
  EXPECT_EQ(x["sequences"][0]["token_ids"], row({1, 2, 3, 10, 11, 4, 20, 21}));
  EXPECT_EQ(x["sequences"][0]["mask"], row({0, 0, 0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(x["turns"][1]["start"], 6);
  EXPECT_EQ(x["turns"][1]["end"], 8);
  EXPECT_EQ(x["sequences"][0]["weight_versions"][1]["start"], 6);
}

TEST(rl_rows, of_a_group_that_has_not_ended_are_left_out) {
  auto open = make_group();
  open.ended = false;
  for (auto as : {form::rl, form::preference, form::trl, form::megatron}) {
    auto x = rows_of(as, open);
    EXPECT_TRUE(x.rows.empty());
    EXPECT_EQ(x.without["open_groups"], 1u);
  }
}

TEST(trainer_rows, hold_only_members_that_are_compared) {
  for (auto as : all_forms) {
    if (!needs_tokens(as)) continue;
    EXPECT_EQ(rows_of(as, make_group()).without["not_compared"], 2u) << to_string(as);
  }
}

TEST(trainer_rows, need_token_ids) {
  auto texts = make_group();
  for (auto& e : texts.episodes)
    for (auto& t : e.turns) t.ids.clear();
  for (auto as : all_forms) {
    if (!needs_tokens(as)) continue;
    auto x = rows_of(as, texts);
    EXPECT_TRUE(x.rows.empty()) << to_string(as);
    EXPECT_EQ(x.without["without_token_ids"], 2u) << to_string(as);
  }
}

TEST(trainer_rows, without_log_probabilities_are_left_out_where_the_trainer_needs_them) {
  auto silent = make_group();
  silent.episodes[0].turns[1].logprobs.clear();
  EXPECT_EQ(rows_of(form::trl, silent).without["without_logprobs"], 1u);
  auto x = rows_of(form::verl, silent);
  EXPECT_EQ(x.without.count("without_logprobs"), 0u);
  EXPECT_TRUE(x.rows.at(0)["response_logprobs"].is_null());
  EXPECT_TRUE(rows_of(form::skyrl, silent).rows.at(0)["rollout_logprobs"].is_null());
}

TEST(trainer_rows, of_nemo_gym_have_prompts_that_go_on_from_each_other) {
  auto x = rows_of(form::nemo_gym, make_group());
  EXPECT_EQ(x.rows.size(), 1u);
  EXPECT_EQ(x.without["branches"], 1u);
}

TEST(trainer_rows, have_log_probabilities_that_are_the_same_floats_bit_by_bit) {
  for (float x : {-0.1f, -1.1754944e-38f, -1e-45f, -0.0f, -12.345678f, std::nextafterf(-1, 0)}) {
    auto read = static_cast<float>(row::parse(row(short_number(x)).dump()).get<double>());
    EXPECT_EQ(std::memcmp(&x, &read, sizeof x), 0) << x;
  }
  EXPECT_EQ(row(short_number(-0.1f)).dump(), "-0.1");
}

TEST(trainer_rows, shift_by_one_for_tinker) {
  auto x = rows_of(form::tinker, make_group()).rows.at(0);
  const auto& in = x["model_input"]["chunks"][0]["tokens"];
  const auto& target = x["loss_fn_inputs"]["target_tokens"]["data"];
  EXPECT_EQ(in, row({1, 2, 3, 10, 11, 4, 20}));
  EXPECT_EQ(target, row({2, 3, 10, 11, 4, 20, 21}));
  EXPECT_EQ(x["loss_fn_inputs"]["advantages"]["data"], row({0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0}));
  EXPECT_EQ(x["loss_fn_inputs"]["advantages"]["shape"], row({7}));
}

} // namespace rows_test
} // namespace kernelmill::exports

#include "actors/governance/reward.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kernelmill {
namespace reward_test {

using testing::HasSubstr;

reward_facts good(double low) {
  return {.format = true,
          .build = true,
          .correct = true,
          .deterministic = true,
          .fast = low >= 1,
          .accepted = true,
          .success = low >= 1,
          .share = 1,
          .speedup_low = low};
}

TEST(reward, every_preset_is_valid_and_known_by_its_name) {
  EXPECT_THAT(reward_presets(),
              testing::ElementsAre("kevin", "staged", "correctness", "sparse", "stage1", "stage2",
                                   "stage3", "sol", "optimize_v1"));
  for (const auto& name : reward_presets()) {
    governance_config config;
    config.preset = name;
    config.reward = *reward_preset(name);
    EXPECT_TRUE(validate(config)) << name;
  }
  auto unknown = reward_preset("kevlin");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().cls, fault_class::configuration);
  EXPECT_THAT(unknown.error().hint, HasSubstr("kevin"));
}

TEST(reward, kevin_pays_0_3_and_the_lower_bound_up_to_the_cap) {
  auto kevin = *reward_preset("kevin");
  EXPECT_DOUBLE_EQ(reward_of(good(0.5), kevin).total, 0.8);
  EXPECT_DOUBLE_EQ(reward_of(good(2), kevin).total, 2.3);
  EXPECT_DOUBLE_EQ(reward_of(good(1e9), kevin).total, 10.3);
  auto wrong = good(2);
  wrong.accepted = false;
  EXPECT_EQ(reward_of(wrong, kevin).total, 0);
}

TEST(reward, the_other_presets) {
  EXPECT_DOUBLE_EQ(reward_of(good(5), *reward_preset("sparse")).total, 1);
  EXPECT_DOUBLE_EQ(reward_of(good(5), *reward_preset("correctness")).total, 1);
  EXPECT_DOUBLE_EQ(reward_of(good(5), *reward_preset("staged")).total,
                   0.05 + 0.1 + 0.15 + 0.3 + 0.6);
  reward_facts half{.format = true, .build = true, .share = 0.5};
  EXPECT_DOUBLE_EQ(reward_of(half, *reward_preset("correctness")).total, 0.15);
  EXPECT_DOUBLE_EQ(reward_of(half, *reward_preset("staged")).total, 0.05 + 0.1 + 0.075);
  EXPECT_EQ(reward_of(half, *reward_preset("sparse")).total, 0);
}

TEST(reward, kernel_rls_stages_pay_steps_of_a_wrong_kernel_too) {
  auto pay = [](const char* stage, const reward_facts& x) {
    return reward_of(x, *reward_preset(stage)).total;
  };
  reward_facts broken{.format = true};
  reward_facts half{.format = true, .build = true, .share = 0.5};
  EXPECT_DOUBLE_EQ(pay("stage1", broken), 0.3);
  EXPECT_DOUBLE_EQ(pay("stage1", half), 0.3 + 0.5 + 0.1);
  EXPECT_DOUBLE_EQ(pay("stage1", good(5)), 1);
  EXPECT_DOUBLE_EQ(pay("stage2", half), 0.1 + 0.2 + 0.35);
  EXPECT_DOUBLE_EQ(pay("stage2", good(5)), 1);
  EXPECT_DOUBLE_EQ(pay("stage3", half), 0.05 + 0.1) << "no share of cases";
  EXPECT_DOUBLE_EQ(pay("stage3", good(2)), 0.05 + 0.1 + 0.5 + 0.7);
}

TEST(reward, a_thought_and_a_short_kernel_earn_along_kernel_rls_lines) {
  reward_config weights{.correct = 0, .speed = 0, .thinking = 1};
  auto thought = [&](size_t bytes) {
    auto x = good(1);
    x.thought_bytes = bytes;
    return reward_of(x, weights).total;
  };
  EXPECT_DOUBLE_EQ(thought(0), 0.5);
  EXPECT_DOUBLE_EQ(thought(1), 1);
  EXPECT_DOUBLE_EQ(thought(2000), 1);
  EXPECT_DOUBLE_EQ(thought(3000), 0.85);
  EXPECT_DOUBLE_EQ(thought(9000), 0.7);
  EXPECT_EQ(reward_of({.thought_bytes = 10}, weights).total, 0) << "of no well-formed answer";
  weights = {.correct = 0, .speed = 0, .length = 1};
  auto kernel = [&](size_t bytes, bool accepted) {
    auto x = good(1);
    x.accepted = accepted;
    x.kernel_bytes = bytes;
    return reward_of(x, weights).total;
  };
  EXPECT_DOUBLE_EQ(kernel(500, true), 1);
  EXPECT_DOUBLE_EQ(kernel(4250, true), 0.5);
  EXPECT_DOUBLE_EQ(kernel(8000, true), 0);
  EXPECT_EQ(kernel(0, false), 0) << "else the shortest kernel would be none";
}

TEST(reward, sol_scores_what_there_was_to_gain) {
  auto sol = *reward_preset("sol");
  auto with = [](double low, double baseline, double roofline) {
    auto x = good(low);
    x.baseline_ms = baseline;
    x.roofline_ms = roofline;
    return x;
  };
  EXPECT_DOUBLE_EQ(reward_of(with(1, 4, 1), sol).total, 0.3 + 0.5);
  EXPECT_DOUBLE_EQ(reward_of(with(2, 4, 1), sol).total, 0.3 + 0.75); // 1/(1 + 1/3)
  EXPECT_DOUBLE_EQ(reward_of(with(4, 4, 1), sol).total, 1.3);
  EXPECT_DOUBLE_EQ(reward_of(with(9, 4, 1), sol).total, 1.3) << "of what is faster yet";
  EXPECT_DOUBLE_EQ(reward_of(with(0.25, 4, 1), sol).total, 0.3 + 1 / 6.0);
  EXPECT_DOUBLE_EQ(reward_of(with(2, 4, 0), sol).total, 0.3) << "no roofline";
  EXPECT_DOUBLE_EQ(reward_of(with(2, 4, 5), sol).total, 0.3) << "no scale";
  auto copy = with(2, 4, 1);
  copy.unchanged = true;
  EXPECT_DOUBLE_EQ(reward_of(copy, sol).total, 0.3) << "a copy earns no speed";
  sol.unchanged_speed = 1;
  EXPECT_DOUBLE_EQ(reward_of(copy, sol).total, 0.8) << "that of the baseline at most";
  copy.critical = true;
  EXPECT_EQ(reward_of(copy, sol).total, 0);
}

TEST(reward, optimize_v1_pays_gpu_rls_gates) {
  auto weights = *reward_preset("optimize_v1");
  EXPECT_EQ(weights.shaping, shaping_kind::optimize_v1);
  EXPECT_DOUBLE_EQ(reward_of(good(2), weights).total, 1);
  EXPECT_DOUBLE_EQ(reward_of(good(0.5), weights).total, 0.35);
  auto unstable = good(2);
  unstable.deterministic = unstable.accepted = unstable.success = unstable.fast = false;
  EXPECT_DOUBLE_EQ(reward_of(unstable, weights).total, 0.25);
  EXPECT_EQ(reward_of({.format = true, .build = true, .share = 0.9}, weights).total, 0);
  EXPECT_TRUE(is_success("optimize", true, true, true));
  EXPECT_FALSE(is_success("optimize", true, true, false));
  EXPECT_TRUE(is_success("debug", true, true, false));
  EXPECT_FALSE(is_success("debug", true, false, true)) << "a copy";
}

TEST(reward, a_part_without_a_weight_is_listed_only_where_it_always_was) {
  std::vector<std::string> names;
  for (const auto& x : reward_of(good(1), *reward_preset("kevin")).parts)
    names.emplace_back(x.name);
  EXPECT_THAT(names, testing::ElementsAre("format", "build", "partial", "correct", "speed",
                                          "diagnosis", "integrity"));
}

TEST(validate, errors_name_the_key) {
  governance_config config;
  config.reward.speed_cap = std::numeric_limits<double>::quiet_NaN();
  auto bad = validate(config);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr("reward.speed_cap"));
  config = {};
  config.reward.integrity_penalty = -1;
  EXPECT_THAT(validate(config).error().message, HasSubstr("reward.integrity_penalty = -1:"));
  config = {};
  config.minimum_speedup = -0.5;
  EXPECT_THAT(validate(config).error().message, HasSubstr("reward.minimum_speedup"));
  config = {};
  config.preset = "x";
  EXPECT_THAT(validate(config).error().message, HasSubstr("reward.preset"));
}

TEST(validate, a_reward_that_never_pays_is_refused) {
  governance_config config;
  config.reward.correct = config.reward.speed = 0;
  EXPECT_THAT(validate(config).error().message, HasSubstr("every weight"));
}

RC_GTEST_PROP(reward, is_finite_and_never_falls_when_a_kernel_gets_better, (double low, bool ok)) {
  for (const auto& name : reward_presets()) {
    auto weights = *reward_preset(name);
    reward_facts worse{.format = true, .build = ok, .share = 0.5};
    auto better = good(std::isfinite(low) ? low : 1);
    RC_ASSERT(std::isfinite(reward_of(better, weights).total));
    RC_ASSERT(reward_of(better, weights).total >= reward_of(worse, weights).total);
    better.critical = true;
    RC_ASSERT(reward_of(better, weights).total <= 0);
  }
}

} // namespace reward_test
} // namespace kernelmill

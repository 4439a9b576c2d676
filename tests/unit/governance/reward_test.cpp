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
  return {.format = true, .build = true, .accepted = true, .share = 1, .speedup_low = low};
}

TEST(reward, every_preset_is_valid_and_known_by_its_name) {
  EXPECT_THAT(reward_presets(), testing::ElementsAre("kevin", "staged", "correctness", "sparse"));
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

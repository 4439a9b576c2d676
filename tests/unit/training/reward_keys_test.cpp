// What a configuration says of rewards reaches the judge: by a run, and by stages of a training.

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/governance/reward.hpp"
#include "launch/config/json_text.hpp"
#include "launch/config/keys.hpp"
#include "launch/node/node_plan.hpp"

namespace kernelmill {
namespace reward_keys_test {

void set(run_config& config, const std::string& key, const nlohmann::json& value) {
  const auto* found = find_config_key(key);
  ASSERT_NE(found, nullptr) << key;
  ASSERT_EQ(check_value(*found, value), "") << key;
  found->set(config, value);
}

TEST(reward_keys, offer_each_preset) {
  EXPECT_THAT(find_config_key("reward.preset")->choices,
              testing::UnorderedElementsAreArray(reward_presets()));
}

TEST(reward_keys, each_number_reaches_the_judge) {
  for (const auto& x : reward_numbers()) {
    run_config config;
    set(config, std::string{"reward."} + x.key, 0.125);
    auto rules = governance_of(config);
    ASSERT_TRUE(rules) << x.key;
    EXPECT_EQ(rules->reward.*x.member, 0.125) << x.key;
  }
}

TEST(reward_keys, shaping_is_the_presets_or_its_own) {
  run_config config;
  EXPECT_EQ(governance_of(config)->reward.shaping, shaping_kind::none);
  set(config, "reward.shaping", "optimize_v1");
  EXPECT_EQ(governance_of(config)->reward.shaping, shaping_kind::optimize_v1);
  set(config, "reward.preset", "optimize_v1");
  set(config, "reward.shaping", "none");
  EXPECT_EQ(governance_of(config)->reward.shaping, shaping_kind::none);
  set(config, "reward.shaping", "preset");
  EXPECT_EQ(governance_of(config)->reward.shaping, shaping_kind::optimize_v1);
}

TEST(reward_keys, the_discount_is_that_of_the_mode) {
  run_config config;
  config.episode.gamma = 0.25;
  config.tools.gamma = 0.75;
  EXPECT_EQ(gamma_of(config), 0.25);
  config.episode.mode = "tools";
  EXPECT_EQ(gamma_of(config), 0.75);
}

TEST(reward_keys, a_training_takes_kernel_rls_stages_by_name) {
  std::string source = std::getenv("KERNELMILL_SOURCE_DIR");
  auto text = read_json_file(source + "/configs/training/stages.json");
  ASSERT_TRUE(text);
  std::vector<std::string> presets{text->value["run"]["reward"]["preset"]};
  for (const auto& stage : text->value["stages"])
    if (stage.contains("run")) presets.push_back(stage["run"]["reward"]["preset"]);
  EXPECT_THAT(presets, testing::ElementsAre("stage1", "stage2", "stage3"));
}

} // namespace reward_keys_test
} // namespace kernelmill

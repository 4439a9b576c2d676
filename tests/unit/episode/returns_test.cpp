#include "actors/episode/returns.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kernelmill {
namespace returns_test {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::NanSensitiveDoubleEq;
using members = std::vector<std::optional<double>>;

const double no_number = std::numeric_limits<double>::quiet_NaN();

TEST(returns, four_turns_at_gamma_0_4) {
  const members rewards{0.2, 0.3, 0.8, 1.0};
  EXPECT_THAT(discounted_returns(rewards, 0.4),
              ElementsAre(DoubleNear(0.512, 1e-12), DoubleNear(0.78, 1e-12), DoubleNear(1.2, 1e-12),
                          DoubleNear(1.0, 1e-12)));
}

TEST(returns, no_turns) {
  EXPECT_TRUE(discounted_returns({}, 0.4).empty());
}

TEST(returns, gamma_0_pays_each_turn_for_itself) {
  EXPECT_THAT(discounted_returns(members{1.0, 2.0, 3.0}, 0), ElementsAre(1, 2, 3));
}

TEST(returns, who_ends_an_episode_by_its_speed_earns_as_if_it_had_held_back) {
  // Four turns: fast in the first one, or slowed down under the limit until the last.
  auto at_once = discounted_returns(members{1.0}, 0.4, 3);
  auto held_back = discounted_returns(members{0.9, 0.9, 0.9, 1.0}, 0.4);
  EXPECT_THAT(at_once, ElementsAre(DoubleNear(1.624, 1e-12)));
  EXPECT_GT(at_once[0], held_back[0]);
  EXPECT_THAT(discounted_returns(members{std::nullopt}, 0.4, 3),
              ElementsAre(NanSensitiveDoubleEq(no_number)));
}

TEST(returns, a_lost_turn_has_none_and_is_skipped_by_the_others) {
  EXPECT_THAT(discounted_returns(members{0.5, std::nullopt, 1.0}, 0.4),
              ElementsAre(DoubleNear(0.9, 1e-12), NanSensitiveDoubleEq(no_number), 1.0));
  EXPECT_THAT(discounted_returns(members{0.5, std::nullopt}, 0.4),
              ElementsAre(0.5, NanSensitiveDoubleEq(no_number)));
}

TEST(returns, what_is_not_known_makes_the_sums_with_it_unknown) {
  EXPECT_THAT(discounted_returns(members{0.5, no_number, 1.0}, 0.4),
              ElementsAre(NanSensitiveDoubleEq(no_number), NanSensitiveDoubleEq(no_number), 1.0));
}

TEST(advantages, mean_centered_normalized_and_leave_one_out) {
  const members x{1.0, 3.0};
  auto centered = group_advantages(x, advantage_kind::mean_centered);
  EXPECT_DOUBLE_EQ(centered.mean, 2);
  EXPECT_DOUBLE_EQ(centered.deviation, 1);
  EXPECT_THAT(centered.advantages, ElementsAre(-1, 1));
  EXPECT_THAT(group_advantages(members{0.0, 4.0}, advantage_kind::normalized).advantages,
              ElementsAre(-1, 1));
  EXPECT_THAT(group_advantages(x, advantage_kind::leave_one_out).advantages, ElementsAre(-2, 2));
}

TEST(advantages, a_member_without_a_return_changes_nothing_for_the_others) {
  auto with = group_advantages(members{1.0, std::nullopt, 3.0}, advantage_kind::leave_one_out);
  EXPECT_TRUE(std::isnan(with.advantages[1]));
  EXPECT_DOUBLE_EQ(with.advantages[0], -2);
  EXPECT_DOUBLE_EQ(with.mean, 2);
}

TEST(advantages, a_return_that_is_not_finite_is_left_out) {
  auto x = group_advantages(members{1.0, std::numeric_limits<double>::infinity(), 3.0},
                            advantage_kind::mean_centered);
  EXPECT_TRUE(std::isnan(x.advantages[1]));
  EXPECT_DOUBLE_EQ(x.advantages[2], 1);
}

TEST(advantages, equals_alone_and_none) {
  for (auto kind :
       {advantage_kind::mean_centered, advantage_kind::normalized, advantage_kind::leave_one_out}) {
    EXPECT_THAT(group_advantages(members{0.1, 0.1, 0.1}, kind).advantages, ElementsAre(0, 0, 0));
    EXPECT_THAT(group_advantages(members{0.7}, kind).advantages, ElementsAre(0));
    EXPECT_TRUE(group_advantages(members{}, kind).advantages.empty());
  }
}

RC_GTEST_PROP(advantages, centered_ones_sum_to_zero, (const std::vector<int16_t>& values)) {
  members x;
  for (auto v : values) x.emplace_back(v / 16.0);
  double sum = 0;
  for (double a : group_advantages(x, advantage_kind::mean_centered).advantages) sum += a;
  RC_ASSERT(std::abs(sum) < 1e-6);
}

RC_GTEST_PROP(returns, the_first_return_is_the_discounted_sum, (const std::vector<int8_t>& r)) {
  members rewards(r.begin(), r.end());
  double sum = 0, factor = 1;
  for (double x : r) sum += factor * x, factor *= 0.4;
  auto result = discounted_returns(rewards, 0.4);
  RC_ASSERT(result.size() == rewards.size());
  RC_PRE(!rewards.empty());
  RC_ASSERT(std::abs(result[0] - sum) < 1e-9);
}

} // namespace returns_test
} // namespace kernelmill

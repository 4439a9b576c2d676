// Figures that can be told without a program. tests/integration/cli/compare_oracle.py does the same
// arithmetic anew for whole runs.

#include "launch/analysis/study/paired.hpp"

#include <gtest/gtest.h>

namespace kernelmill::study {
namespace paired_test {

TEST(paired, nothing_is_said_of_no_pair_and_no_interval_of_one) {
  EXPECT_FALSE(compare_pairs({}, {}));
  paired_value one[] = {{1, 3}};
  auto x = compare_pairs(one, {});
  ASSERT_TRUE(x);
  EXPECT_EQ(x->difference, 2);
  EXPECT_FALSE(x->low);
}

TEST(paired, equal_differences_have_an_interval_without_width) {
  paired_value same[] = {{1, 1.5}, {2, 2.5}, {7, 7.5}};
  auto x = compare_pairs(same, {});
  EXPECT_DOUBLE_EQ(x->difference, 0.5);
  EXPECT_DOUBLE_EQ(*x->low, 0.5);
  EXPECT_DOUBLE_EQ(*x->high, 0.5);
}

// Of two tasks, draws have a mean of 0, 1/2 or 1 with the chances 1/4, 1/2 and 1/4.
TEST(paired, the_interval_of_two_tasks_holds_both) {
  paired_value two[] = {{0, 0}, {0, 1}};
  auto x = compare_pairs(two, {});
  EXPECT_EQ(*x->low, 0);
  EXPECT_EQ(*x->high, 1);
}

TEST(paired, the_same_seed_gives_the_same_interval_and_another_one_nearly_so) {
  std::vector<paired_value> pairs;
  splitmix64 random{3};
  for (int i = 0; i < 200; ++i) pairs.push_back({0, static_cast<double>(random.below(1000))});
  auto x = compare_pairs(pairs, {10'000, 1}), again = compare_pairs(pairs, {10'000, 1}),
       other = compare_pairs(pairs, {10'000, 2});
  EXPECT_EQ(*x->low, *again->low);
  EXPECT_EQ(*x->high, *again->high);
  EXPECT_NE(*x->low, *other->low);
  EXPECT_NEAR(*x->low, *other->low, 3);
  // 288.7 / sqrt(200) is the standard error of a mean of 200 numbers below 1000.
  EXPECT_NEAR(*x->high - *x->low, 2 * 1.96 * 288.7 / 14.142, 6);
}

TEST(sign_test, is_the_binomial_one) {
  EXPECT_DOUBLE_EQ((win_count{0, 0, 5}.p()), 1);
  EXPECT_NEAR((win_count{5, 0, 0}.p()), 0.0625, 1e-12);
  EXPECT_NEAR((win_count{9, 1, 3}.p()), 2 * 11 / 1024.0, 1e-12);
  EXPECT_DOUBLE_EQ((win_count{4, 4, 0}.p()), 1);
  EXPECT_GT((win_count{5000, 5000, 0}.p()), 0.99);
}

TEST(quantiles, are_linear_between_neighbours) {
  double x[] = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(quantile(x, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(x, 1), 8);
  EXPECT_DOUBLE_EQ(quantile(x, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(x, 0.25), 1.75);
}

// The first numbers of the published generator for the seed 1234567.
TEST(splitmix64_numbers, are_those_of_the_published_generator) {
  splitmix64 x{1234567};
  EXPECT_EQ(x.next(), 6457827717110365317u);
  EXPECT_EQ(x.next(), 3203168211198807973u);
  EXPECT_EQ(x.next(), 9817491932198370423u);
}

} // namespace paired_test
} // namespace kernelmill::study

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "launch/analysis/report/metrics.hpp"

namespace kernelmill::reporting {

namespace metrics_test {

// Eight samples: four correct with speedups 0.5, 1, 1.5 and 3, one correct without a timing, three
// wrong, of which one was fast.
const std::vector<scored> eight{{true, 0.5}, {true, 1.0}, {true, 1.5},  {true, 3.0},
                                {true, {}},  {false, {}}, {false, 9.0}, {false, {}}};

TEST(fast_p, at_0_is_the_share_of_correct_samples_timed_or_not) {
  EXPECT_EQ(fast_count(eight, 0), 5u);
  EXPECT_DOUBLE_EQ(*fast_p(eight, 0), 5.0 / 8);
}

TEST(fast_p, counts_what_is_strictly_faster_and_correct) {
  EXPECT_EQ(fast_count(eight, 0.4), 4u);
  EXPECT_EQ(fast_count(eight, 1), 2u); // exactly as fast is not faster; fast and wrong is nothing
  EXPECT_EQ(fast_count(eight, 2), 1u);
  EXPECT_EQ(fast_count(eight, 3), 0u);
  EXPECT_DOUBLE_EQ(*fast_p(eight, 1), 0.25);
}

TEST(fast_p, of_no_samples_is_no_number) {
  EXPECT_FALSE(fast_p({}, 1));
}

TEST(pass_at_k, agrees_with_counting_by_hand) {
  // Of 5 samples 2 are right. C(3,1)/C(5,1) = 3/5; C(3,2)/C(5,2) = 3/10; C(3,3)/C(5,3) = 1/10.
  EXPECT_DOUBLE_EQ(*pass_at_k(5, 2, 1), 0.4);
  EXPECT_DOUBLE_EQ(*pass_at_k(5, 2, 2), 0.7);
  EXPECT_NEAR(*pass_at_k(5, 2, 3), 0.9, 1e-12);
  EXPECT_EQ(*pass_at_k(5, 2, 4), 1);
  // C(9,5)/C(10,5) = 126/252.
  EXPECT_NEAR(*pass_at_k(10, 1, 5), 0.5, 1e-12);
}

TEST(pass_at_k, none_right_is_0_and_all_right_is_1) {
  EXPECT_EQ(*pass_at_k(4, 0, 4), 0);
  EXPECT_EQ(*pass_at_k(4, 4, 1), 1);
}

TEST(pass_at_k, of_more_than_there_are_is_no_number) {
  EXPECT_FALSE(pass_at_k(4, 2, 5));
  EXPECT_FALSE(pass_at_k(0, 0, 1));
  EXPECT_FALSE(pass_at_k(4, 2, 0));
}

TEST(pass_at_k, of_thousands_stays_a_number) {
  EXPECT_NEAR(*pass_at_k(100000, 50000, 10), 1 - std::pow(0.5, 10), 1e-6);
}

TEST(means, agree_with_counting_by_hand) {
  std::vector<double> values{4, 1, 2};
  EXPECT_NEAR(*geometric_mean(values), 2, 1e-12);
  EXPECT_NEAR(*mean(values), 7.0 / 3, 1e-12);
  EXPECT_EQ(*median(values), 2);
  values.push_back(8);
  EXPECT_NEAR(*geometric_mean(values), std::sqrt(8), 1e-12);
  EXPECT_EQ(*median(values), 3);
}

TEST(means, geometric_mean_of_many_large_ratios_does_not_overflow) {
  EXPECT_NEAR(*geometric_mean(std::vector<double>(1000, 1e3)), 1e3, 1e-6);
}

TEST(means, of_nothing_are_no_numbers) {
  EXPECT_FALSE(geometric_mean({}));
  EXPECT_FALSE(mean({}));
  EXPECT_FALSE(median({}));
}

} // namespace metrics_test

} // namespace kernelmill::reporting

#include "gpu/timing/timing_statistics.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "made_blocks.hpp"

using namespace kernelmill;

namespace timing_statistics_test {

TEST(timing_statistics, linear_drift_cancels_within_a_block) {
  // reference, candidate, candidate, reference while the machine gets slower by 1 % a call.
  timed_block drifting{{1.00 * 2, 1.03 * 2}, {1.01, 1.02}};
  EXPECT_NEAR(std::exp(log_ratio(drifting)), 2, 1e-3);
}

TEST(timing_statistics, median_of_even_and_odd_counts) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(timing_statistics, equal_blocks_give_a_point) {
  for (size_t n : {3, 12}) {
    auto x = estimate_speedup(std::vector<timed_block>(n, block(2, 1)));
    EXPECT_NEAR(x.estimate, 2, 1e-12);
    EXPECT_NEAR(x.low, 2, 1e-12);
    EXPECT_NEAR(x.high, 2, 1e-12);
  }
}

TEST(timing_statistics, one_block_says_nothing) {
  auto x = estimate_speedup({block(2, 1)});
  EXPECT_EQ(x.low, 0);
  EXPECT_TRUE(std::isinf(x.high));
}

TEST(timing_statistics, six_blocks_span_their_range) {
  std::vector<timed_block> blocks;
  for (double x : {1.0, 1.1, 1.2, 1.3, 1.4, 1.5}) blocks.push_back(block(x, 1));
  auto x = estimate_speedup(blocks); // 2 * 2^-6 = 3.1 % lie outside, 6.2 % one step further in
  EXPECT_NEAR(x.low, 1.0, 1e-12);
  EXPECT_NEAR(x.high, 1.5, 1e-12);
}

TEST(timing_statistics, one_outlier_does_not_move_estimate_or_interval) {
  auto blocks = noisy(14, 3, 0.02); // below 12 blocks one outlier widens the interval
  blocks[4] = block(2, 50);
  auto x = estimate_speedup(blocks);
  EXPECT_NEAR(x.estimate, 2, 0.05);
  EXPECT_GT(x.low, 1.9);
  EXPECT_LT(x.high, 2.1);
}

// As the controller measures: block by block until the interval is narrow enough, and one more.
double coverage(size_t least, size_t most, double half_width, double noise) {
  constexpr unsigned tries = 1000;
  unsigned covered = 0;
  for (unsigned seed = 1; seed <= tries; ++seed) {
    auto all = noisy(most, seed, noise);
    std::vector<timed_block> seen(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(least));
    while (seen.size() < most && estimate_speedup(seen).relative_half_width() > half_width)
      seen.push_back(all[seen.size()]);
    if (seen.size() < most) seen.push_back(all[seen.size()]);
    auto x = estimate_speedup(seen);
    covered += x.low <= 2 && 2 <= x.high;
  }
  return static_cast<double>(covered) / tries;
}

TEST(timing_statistics, the_interval_covers_the_truth_though_it_decides_when_to_stop) {
  for (double noise : {0.02, 0.1, 0.2, 0.4}) {
    EXPECT_GT(coverage(4, 9, 0.03, noise), 0.92) << noise;
    EXPECT_GT(coverage(8, 24, 0.03, noise), 0.92) << noise;
  }
}

TEST(timing_statistics, a_wider_interval_holds_both_spreads) {
  speedup_interval x{2, 2 * std::exp(-0.03), 2 * std::exp(0.04)};
  auto wider = widened(x, 0.04 / 1.96);
  EXPECT_EQ(wider.estimate, 2);
  EXPECT_NEAR(std::log(2 / wider.low), 0.05, 1e-12);
  EXPECT_NEAR(std::log(wider.high / 2), std::hypot(0.04, 0.04), 1e-12);
  EXPECT_EQ(widened(x, 0).low, x.low);
  speedup_interval nothing{1, 0, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(widened(nothing, 0.1).low, 0);
  EXPECT_TRUE(std::isinf(widened(nothing, 0.1).high));
}

// -- order --------------------------------------------------------------------------------------

// Blocks of a candidate that takes 1 ms as the baseline does, in which who is called second is
// slower: the baseline by the one factor, the candidate by the other.
std::vector<timed_block> second_slower(double reference, double candidate, double noise) {
  auto blocks = noisy(12, 5, noise);
  for (auto& x : blocks)
    x = {{1e-3 * x.reference[0], 1e-3 * x.reference[1] * reference},
         {1e-3 * x.candidate[0] * candidate, 1e-3 * x.candidate[1]}};
  return blocks;
}

TEST(slowed_by_order, a_baseline_that_is_slower_after_the_candidate_is_seen) {
  auto slowed = slowed_by_order(second_slower(1.2, 1, 0.01));
  ASSERT_TRUE(slowed);
  EXPECT_NEAR(*slowed * *slowed, 1.2, 0.02);
  EXPECT_NEAR(estimate_speedup(second_slower(1.2, 1, 0.01)).estimate / *slowed,
              estimate_speedup(second_slower(1, 1, 0.01)).estimate, 0.02);
}

TEST(baseline_half_width, is_what_the_baseline_varies_by) {
  std::vector<timed_block> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back({{1, 1}, {i + 1.0, 1}}); // the candidate varies
  EXPECT_NEAR(baseline_half_width(blocks), 0, 1e-12);
  for (int i = 0; i < 6; ++i) blocks[static_cast<size_t>(i)].reference[0] = 1 + i % 2;
  EXPECT_GT(baseline_half_width(blocks), 0.05);
}

TEST(slowed_by_order, the_second_of_a_pair_may_be_slower) {
  EXPECT_FALSE(slowed_by_order(second_slower(1.1, 1.1, 0.01)));
  EXPECT_FALSE(slowed_by_order(second_slower(1, 1, 0.05)));
  EXPECT_FALSE(slowed_by_order({}));
}

TEST(trimmed_mean, leaves_out_the_largest_tenth) {
  EXPECT_EQ(trimmed_mean({}), 0);
  EXPECT_EQ(trimmed_mean({3}), 3);
  std::vector<double> x(20, 1.0);
  x[4] = x[7] = 1000;
  EXPECT_EQ(trimmed_mean(x), 1);
}

} // namespace timing_statistics_test

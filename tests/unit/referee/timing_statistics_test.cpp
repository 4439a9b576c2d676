#include <cmath>

#include <gtest/gtest.h>

#include "gpu/referee/timing_statistics.hpp"

using namespace kernelmill;

namespace {

timed_block block(double reference, double candidate) {
  return {{reference, reference}, {candidate, candidate}};
}

// Blocks whose speedup is 2, with noise that a seed decides.
std::vector<timed_block> noisy(size_t n, unsigned seed, double noise) {
  std::vector<timed_block> result;
  unsigned state = seed * 2654435761u + 1;
  for (size_t i = 0; i < n; ++i) {
    auto draw = [&] {
      state = state * 1664525u + 1013904223u;
      return 1 + noise * (static_cast<double>(state >> 8) / 0x1p24 - 0.5);
    };
    result.push_back({{2 * draw(), 2 * draw()}, {draw(), draw()}});
  }
  return result;
}

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
  auto x = bootstrap_speedup({block(2, 1), block(2, 1), block(2, 1)}, 7);
  EXPECT_NEAR(x.estimate, 2, 1e-12);
  EXPECT_NEAR(x.low, 2, 1e-12);
  EXPECT_NEAR(x.high, 2, 1e-12);
}

TEST(timing_statistics, the_same_seed_gives_the_same_interval) {
  auto blocks = noisy(9, 1, 0.3);
  auto a = bootstrap_speedup(blocks, 42);
  auto b = bootstrap_speedup(blocks, 42);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(timing_statistics, one_outlier_does_not_move_the_estimate) {
  auto blocks = noisy(11, 3, 0.02);
  blocks[4] = block(2, 50);
  EXPECT_NEAR(bootstrap_speedup(blocks, 1).estimate, 2, 0.05);
}

TEST(timing_statistics, the_interval_covers_the_truth_most_of_the_time) {
  int covered = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    auto x = bootstrap_speedup(noisy(12, seed, 0.4), seed, 400);
    covered += x.low <= 2 && 2 <= x.high;
  }
  EXPECT_GT(covered, 170); // 95 % is what it aims at; the bootstrap of a median is a little short
}

TEST(timing_statistics, stops_for_each_of_its_reasons) {
  stopping_rule rule;
  std::vector<timed_block> clear(5, block(2, 1));
  EXPECT_EQ(stop_reason(clear, rule, 0.01, 1), "the interval is narrow enough");
  EXPECT_EQ(stop_reason({clear.begin(), clear.begin() + 3}, rule, 0.01, 1), "");
  EXPECT_EQ(stop_reason({clear.begin(), clear.begin() + 3}, rule, 2.0, 1),
            "the time budget is spent");
  EXPECT_EQ(stop_reason(std::vector<timed_block>(3, block(1, 3)), rule, 0.01, 1),
            "slower than half the reference in every block");
  EXPECT_EQ(stop_reason(std::vector<timed_block>(2, block(1, 3)), rule, 0.01, 1), "");
  EXPECT_EQ(stop_reason(noisy(30, 5, 0.9), rule, 0.01, 1), "the most blocks");
  EXPECT_EQ(stop_reason(noisy(8, 5, 0.9), rule, 0.01, 1), "");
}

} // namespace

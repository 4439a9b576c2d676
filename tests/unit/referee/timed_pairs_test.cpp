// What counts of pairs that other programs disturbed.

#include <vector>

#include <gtest/gtest.h>

#include "gpu/referee/timed_pairs.hpp"

using namespace kernelmill;

namespace timed_pairs_test {

pair_times pair(double reference, double candidate, bool disturbed) {
  pair_times x;
  x.reference = reference;
  x.candidate = candidate;
  x.disturbed = disturbed;
  return x;
}

struct met {
  std::optional<pair_times> pair;
  size_t taken = 0;
};

met meet(const std::vector<pair_times>& pairs, bool expired = false) {
  met result;
  result.pair = meet_kind(
      [&](pair_times& into) {
        if (result.taken == pairs.size()) return false;
        into = pairs[result.taken++];
        return true;
      },
      [&] { return expired; });
  return result;
}

TEST(meet_kind, an_undisturbed_pair_counts_at_once) {
  auto x = meet({pair(1, 3, false), pair(1, 1, false)});
  EXPECT_EQ(x.taken, 1u);
  EXPECT_EQ(x.pair->candidate, 3);
}

TEST(meet_kind, a_disturbed_pair_comes_again_with_the_same_kind) {
  auto x = meet({pair(9, 9, true), pair(1, 3, false)});
  EXPECT_EQ(x.taken, 2u);
  EXPECT_EQ(x.pair->reference, 1);
  EXPECT_EQ(x.pair->candidate, 3);
  EXPECT_FALSE(x.pair->disturbed);
}

TEST(meet_kind, of_three_disturbed_pairs_the_shorter_calls_of_either_count) {
  auto x = meet({pair(2, 4, true), pair(1, 6, true), pair(3, 3, true), pair(1, 1, false)});
  EXPECT_EQ(x.taken, 3u);
  EXPECT_EQ(x.pair->reference, 1);
  EXPECT_EQ(x.pair->candidate, 3);
  EXPECT_TRUE(x.pair->disturbed);
}

TEST(meet_kind, ends_with_the_evaluation_and_with_the_candidate) {
  EXPECT_EQ(meet({pair(2, 4, true), pair(1, 1, false)}, true).taken, 1u);
  EXPECT_FALSE(meet({pair(2, 4, true)}).pair);
}

TEST(fixed_cost, is_that_of_the_latest_empty_calls) {
  fixed_cost x{10e-6};
  for (int i = 0; i < 4; ++i) x.add(8e-6);
  EXPECT_DOUBLE_EQ(x.now(), 10e-6); // too few to say
  x.add(8e-6);
  EXPECT_DOUBLE_EQ(x.now(), 8e-6);
  for (int i = 0; i < 9; ++i) x.add(17e-6); // a neighbour of the machine has begun to work
  EXPECT_DOUBLE_EQ(x.now(), 17e-6);
  EXPECT_DOUBLE_EQ(x.without(100e-6), 83e-6);
  EXPECT_DOUBLE_EQ(x.typical(), 17e-6);
}

TEST(fixed_cost, is_bounded_by_what_it_was_without_a_candidate) {
  fixed_cost x{10e-6};
  for (int i = 0; i < 9; ++i) x.add(50e-6);
  EXPECT_DOUBLE_EQ(x.now(), 20e-6);
  EXPECT_DOUBLE_EQ(x.without(20e-6), 5e-6); // at most three quarters of a call
  EXPECT_DOUBLE_EQ(x.without(100e-6), 80e-6);
  EXPECT_DOUBLE_EQ(x.without(100e-6, true), 90e-6); // of a process with threads
  EXPECT_DOUBLE_EQ(x.without(8e-6, true), 2e-6);
}

} // namespace timed_pairs_test

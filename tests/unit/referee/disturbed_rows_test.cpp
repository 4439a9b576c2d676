// Which rows others made longer, and which a candidate made so.

#include <algorithm>

#include <gtest/gtest.h>

#include "gpu/referee/device/disturbed_rows.hpp"

using namespace kernelmill;

namespace disturbed_rows_test {

constexpr double call = 100e-6;

// Rows of 12 calls, of which some are longer by so many seconds a row.
side_rows rows(const std::vector<double>& longer) {
  std::vector<double> seconds;
  for (size_t i = 0; i < longer.size(); ++i)
    seconds.push_back(call + static_cast<double>(i % 3) * 0.1e-6 + longer[i] / 12);
  return side_of(seconds, std::vector<double>(seconds.size(), 12));
}

std::vector<double> some_of(size_t n, size_t longer, double seconds) {
  std::vector<double> result(n, 0.0);
  for (size_t i = 0; i < longer; ++i) result[n - 1 - 2 * i] = seconds;
  return result;
}

size_t count_of(const std::vector<bool>& x) {
  return static_cast<size_t>(std::count(x.begin(), x.end(), true));
}

// The GPU waited for a first launch, which is some 6 % of such a row.
TEST(undisturbed, are_rows_with_a_launch_that_was_not_late_on_either_side) {
  auto late = rows(some_of(12, 4, 80e-6));
  auto counts = undisturbed(late, rows(some_of(12, 0, 0)), late);
  EXPECT_EQ(count_of(counts), 8u);
  auto all = rows(some_of(12, 0, 0));
  EXPECT_EQ(count_of(undisturbed(all, all, late)), 12u) << "the baseline's late launches are known";
  EXPECT_EQ(count_of(undisturbed(all, late, late)), 8u) << "longer, whatever its launches are";
}

TEST(undisturbed, are_all_rows_of_a_candidate_that_is_slow_now_and_then) {
  auto quiet = rows(some_of(12, 0, 0));
  for (double longer : {50e-6, 80e-6, 0.4e-3})
    EXPECT_EQ(count_of(undisturbed(rows(some_of(12, 5, longer)), quiet, quiet)), 12u) << longer;
  // Others explain a little, and much is its own.
  auto late = rows(some_of(12, 5, 60e-6));
  EXPECT_EQ(count_of(undisturbed(rows(some_of(12, 5, 0.4e-3)), quiet, late)), 12u);
}

TEST(undisturbed, of_few_are_those_that_are_not_much_longer) {
  auto mine = rows({0, 0, 60e-6, 60e-6, 60e-6, 0.4e-3});
  auto theirs = rows({60e-6, 60e-6, 0, 0, 0.4e-3, 60e-6});
  auto counts = undisturbed(mine, theirs, theirs);
  EXPECT_EQ(counts, (std::vector<bool>{true, true, true, true, false, false}));
}

TEST(undisturbed, rows_may_differ_as_the_shortest_do) {
  std::vector<double> wide;
  for (int i = 0; i < 12; ++i) wide.push_back(i * 6e-6); // 0.5 % of a row more in each
  EXPECT_EQ(count_of(undisturbed(rows(wide), rows(wide), rows(wide))), 10u);
}

TEST(usual_beside, is_not_what_launches_make_that_are_late_on_both_sides) {
  auto late = rows(some_of(12, 5, 80e-6));
  EXPECT_NEAR(usual_beside(late, late), call, 0.3e-6);
  EXPECT_NEAR(usual_beside(rows(some_of(12, 5, 80e-6)), rows(some_of(12, 0, 0))), call, 0.3e-6)
      << "the median";
  EXPECT_NEAR(usual_beside(rows(some_of(12, 6, 0.4e-3)), late), call + 0.2e-3 / 12, 0.3e-6)
      << "of all, where others explain a little and half are much longer";
}

TEST(usual_of_few, is_not_what_others_made_longer) {
  EXPECT_DOUBLE_EQ(usual_of_few({5e-6, 1.01e-6, 6e-6, 1e-6, 7e-6}), 1.01e-6) << "three of five";
  EXPECT_DOUBLE_EQ(usual_of_few({100, 101, 102, 103, 104, 105, 106, 107, 108}), 104)
      << "of many the median";
  EXPECT_DOUBLE_EQ(usual_of_few({9, 9.1, 9.2, 9.3, 9.4, 14, 14, 14, 15, 15, 15, 16}), 9.2)
      << "seven of twelve";
  EXPECT_EQ(usual_of_few({}), 0);
}

} // namespace disturbed_rows_test

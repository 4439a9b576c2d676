#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/not_timed.hpp"

using namespace kernelmill;
using testing::HasSubstr;

namespace not_timed_test {

constexpr double widest = 0.5;

evaluation_record measured(double low, double estimate, double high) {
  evaluation_record x;
  x.correct = true;
  x.timing.measured = true;
  x.timing.note = "the time budget is spent";
  x.timing.samples = 4;
  x.timing.speedup = {estimate, low, high};
  x.timing.candidate_seconds = 1e-3;
  x.timing.baseline = {10, 1, 8, 0.02, 1};
  return x;
}

evaluation_record not_measured(uint32_t calls, uint32_t disturbed) {
  auto x = measured(0, 0, 0);
  x.timing.measured = false;
  x.timing.baseline = {calls, disturbed, 0, 0, 1};
  return x;
}

untimed settled(evaluation_record x) {
  settle_untimed(x, widest);
  return x.timing.why_not;
}

TEST(not_timed, an_interval_that_says_something_stays) {
  auto x = measured(1.2, 2, 3.1);
  settle_untimed(x, widest);
  EXPECT_TRUE(x.timing.measured);
  EXPECT_EQ(x.timing.why_not, untimed::no);
  EXPECT_EQ(x.timing.speedup.low, 1.2);
}

TEST(not_timed, an_interval_that_says_nothing_is_none) {
  auto x = measured(0.17, 1.69, 16.73);
  settle_untimed(x, widest);
  EXPECT_FALSE(x.timing.measured);
  EXPECT_EQ(x.timing.speedup.low, 0);
  EXPECT_EQ(x.timing.candidate_seconds, 0);
  EXPECT_THAT(x.timing.note, HasSubstr("from 0.17 to 16.73 says nothing (4 calls)"));
  EXPECT_EQ(settled(measured(0, 1, std::numeric_limits<double>::infinity())), untimed::candidate);
}

// Of a call that takes hardly longer than an empty one: its pairs are alike, what is paid is not.
TEST(not_timed, it_is_not_told_that_such_an_interval_is_narrow_enough) {
  auto x = measured(0.34, 1, 2.73);
  x.timing.note = "the interval is narrow enough; 1 pairs were disturbed by other programs";
  settle_untimed(x, widest);
  EXPECT_EQ(x.timing.note, "not timed: a speedup from 0.34 to 2.73 says nothing (4 calls); "
                           "1 pairs were disturbed by other programs");
  x = measured(0.34, 1, 2.73);
  x.timing.note = "the interval is narrow enough";
  settle_untimed(x, widest);
  EXPECT_EQ(x.timing.note, "not timed: a speedup from 0.34 to 2.73 says nothing (4 calls)");
}

TEST(not_timed, that_one_is_slower_is_known_however_wide_the_interval_is) {
  EXPECT_EQ(settled(measured(0.01, 0.1, 0.9)), untimed::no);
  EXPECT_EQ(settled(measured(0.01, 0.1, 1.1)), untimed::candidate);
}

// The candidate stands still while the baseline runs: it cannot make that look disturbed.
TEST(not_timed, it_is_the_machine_where_half_of_the_baselines_calls_were_disturbed) {
  EXPECT_EQ(settled(not_measured(8, 4)), untimed::machine);
  EXPECT_EQ(settled(not_measured(8, 3)), untimed::candidate);
  EXPECT_EQ(settled(not_measured(8, 0)), untimed::candidate);
}

TEST(not_timed, too_few_calls_of_the_baseline_speak_against_the_candidate_alone) {
  EXPECT_EQ(settled(not_measured(3, 3)), untimed::candidate);
  EXPECT_EQ(settled(not_measured(4, 2)), untimed::machine);
}

// If only a few pairs fit the budget, half of them may be disturbed.
TEST(not_timed, a_candidate_that_looks_far_slower_is_not_rid_of_it_on_a_busy_machine) {
  auto x = not_measured(8, 8);
  x.timing.baseline.behind = 1.9;
  EXPECT_EQ(settled(x), untimed::machine);
  x.timing.baseline.behind = 2.1;
  EXPECT_EQ(settled(x), untimed::candidate);
}

TEST(not_timed, it_is_the_machine_where_the_baseline_alone_is_as_uneven) {
  auto x = measured(0.17, 1.69, 16.73);
  x.timing.baseline = {16, 0, 8, 0.6, 1};
  EXPECT_EQ(settled(x), untimed::machine);
  x.timing.baseline.half_width = 0.1; // then only the candidate is
  EXPECT_EQ(settled(x), untimed::candidate);
  // A slow candidate leaves time for few blocks, and a few of them are wide apart.
  x.timing.baseline = {4, 0, 2, 0.6, 1};
  EXPECT_EQ(settled(x), untimed::candidate);
}

TEST(not_timed, what_is_wrong_or_has_a_fault_is_judged_by_that) {
  auto x = not_measured(8, 8);
  x.correct = false;
  EXPECT_EQ(settled(x), untimed::no);
  x.correct = true;
  x.fault = {fault_class::infrastructure, "cuda_failed", {}, {}};
  EXPECT_EQ(settled(x), untimed::no);
}

} // namespace not_timed_test

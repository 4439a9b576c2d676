// What a batch of calls on a CPU is, apart from its processes.

#include <gtest/gtest.h>

#include "gpu/referee/host_batches.hpp"
#include "gpu/timing/thresholds.hpp"

using namespace kernelmill;
using timing::batch_side;

namespace host_batches_test {

TEST(call_overhead, is_that_of_the_latest_empty_calls) {
  call_overhead x{10e-6};
  for (int i = 0; i < 4; ++i) x.add(8e-6);
  EXPECT_DOUBLE_EQ(x.now(), 10e-6); // too few to say
  x.add(8e-6);
  EXPECT_DOUBLE_EQ(x.now(), 8e-6);
  for (int i = 0; i < 9; ++i) x.add(17e-6); // a neighbour of the machine has begun to work
  EXPECT_DOUBLE_EQ(x.now(), 17e-6);
  EXPECT_DOUBLE_EQ(x.without(100e-6, false), 83e-6);
}

TEST(call_overhead, is_bounded_by_what_it_was_without_a_candidate) {
  call_overhead x{10e-6};
  for (int i = 0; i < 9; ++i) x.add(50e-6);
  EXPECT_DOUBLE_EQ(x.now(), 20e-6);
  EXPECT_DOUBLE_EQ(x.without(20e-6, false), timing::least_share * 20e-6);
  EXPECT_DOUBLE_EQ(x.without(100e-6, false), 80e-6);
  EXPECT_DOUBLE_EQ(x.without(100e-6, true), 90e-6); // of a process with threads
}

TEST(twin_batches, both_sides_have_the_same_calls) {
  twin_batches x;
  for (int i = 0; i < 4; ++i) x.add(2e-3, 1e-3, 0);
  auto baseline = x.sample(batch_side::baseline, 1);
  auto candidate = x.sample(batch_side::candidate, 1);
  EXPECT_EQ(baseline.calls, 4u);
  EXPECT_EQ(candidate.calls, 4u);
  EXPECT_DOUBLE_EQ(baseline.inside, 8e-3);
  EXPECT_DOUBLE_EQ(candidate.out, 4e-3);
  EXPECT_FALSE(candidate.disturbed);
}

TEST(twin_batches, late_work_is_charged_to_the_candidate_alone) {
  twin_batches x;
  x.add(1e-3, 1e-3, 50e-6);
  x.add(1e-3, 1e-3, -10e-6);
  EXPECT_DOUBLE_EQ(x.sample(batch_side::candidate, 1).out, 2.04e-3);
  EXPECT_DOUBLE_EQ(x.sample(batch_side::baseline, 1).out, 2e-3);
  x.add(1e-3, 1e-3, -1);
  EXPECT_DOUBLE_EQ(x.sample(batch_side::candidate, 1).out, 3e-3); // to be early is no merit
}

TEST(twin_batches, each_pattern_has_a_call_however_long_that_takes) {
  twin_batches x;
  x.add(1e-3, 2, 0);
  EXPECT_TRUE(x.wants_more(16, 2));
  EXPECT_TRUE(x.sample(batch_side::candidate, 2).disturbed);
  x.add(1e-3, 2, 0);
  EXPECT_FALSE(x.wants_more(16, 2));
  EXPECT_FALSE(x.sample(batch_side::candidate, 2).disturbed);
}

TEST(twin_batches, end_with_the_calls_that_are_wished) {
  twin_batches x;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(x.wants_more(3, 1));
    x.add(1e-3, 1e-3, 0);
  }
  EXPECT_FALSE(x.wants_more(3, 1));
  EXPECT_TRUE(x.wants_more(3, 4));
}

} // namespace host_batches_test

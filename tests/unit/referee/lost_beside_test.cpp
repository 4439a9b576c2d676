// Whose fault it is that a referee is lost.

#include "gpu/referee/lost_beside.hpp"

#include <gtest/gtest.h>

namespace kernelmill {

namespace lost_beside_test {

error lost(const std::string& category) {
  return {fault_class::infrastructure, category, "no answer", {}};
}

TEST(lost_beside, once_it_is_the_machines_and_the_candidate_is_remembered) {
  for (const char* category : {"referee_timeout", "referee_lost", "python_failed"}) {
    lost_beside x;
    EXPECT_FALSE(x.holds("a"));
    EXPECT_EQ(x.settled("a", lost(category), false).cls, fault_class::infrastructure);
    EXPECT_TRUE(x.holds("a"));
    EXPECT_FALSE(x.holds("b"));
  }
}

TEST(lost_beside, what_recurs_after_a_control_that_works_is_the_candidates) {
  lost_beside x;
  x.settled("a", lost("referee_timeout"), false);
  auto found = x.settled("a", lost("python_failed"), true); // elsewhere, by another name
  EXPECT_EQ(found.cls, fault_class::candidate);
  EXPECT_EQ(found.category, "disturbed_referee");
}

TEST(lost_beside, where_the_control_fails_too_it_stays_the_machines) {
  lost_beside x;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(x.settled("a", lost("referee_lost"), false).cls, fault_class::infrastructure);
}

TEST(lost_beside, no_candidate_is_blamed_for_what_the_referee_saw_of_others) {
  lost_beside x;
  for (const char* category : {"gpu_stuck", "control_failed", "cancelled", "referee_killed"})
    EXPECT_EQ(x.settled("a", lost(category), true).category, category);
  EXPECT_FALSE(x.holds("a"));
  EXPECT_EQ(x.settled("", lost("referee_lost"), true).cls, fault_class::infrastructure);
}

} // namespace lost_beside_test

} // namespace kernelmill

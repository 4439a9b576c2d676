#include <gtest/gtest.h>

#include "gpu/process/standstill.hpp"
#include "gpu/referee/disturbance.hpp"

using namespace kernelmill;

namespace disturbance_test {

// A call of 100 us that takes as much of a processor, and what it waited for a core.
call_measure waiting(double seconds) {
  call_measure x;
  x.seconds = 100e-6 + seconds;
  x.cpu_seconds = 100e-6;
  x.waited = seconds;
  return x;
}

TEST(disturbance, a_process_that_waits_for_a_core_of_others_is_disturbed) {
  EXPECT_FALSE(was_disturbed(waiting(0), 100e-6));
  EXPECT_FALSE(was_disturbed(waiting(4e-6), 100e-6));
  EXPECT_TRUE(was_disturbed(waiting(50e-6), 100e-6));
  EXPECT_TRUE(was_disturbed(waiting(3e-3), 98e-6)); // the least varies a little
}

TEST(disturbance, a_process_that_waits_for_its_own_threads_is_not) {
  auto x = waiting(3e-3);
  x.cpu_seconds += 3e-3; // of the threads that had the core
  EXPECT_FALSE(was_disturbed(x, 100e-6));
}

TEST(disturbance, a_slow_call_that_also_waits_is_slow) {
  auto x = waiting(1e-3);
  x.seconds += 2e-3;
  x.cpu_seconds += 2e-3;
  EXPECT_FALSE(was_disturbed(x, 100e-6));
}

TEST(disturbance, a_process_that_waits_more_often_than_the_baseline_is_not_excused) {
  excused_waits quiet;
  int excused = 0;
  for (int i = 0; i < 30; ++i) excused += quiet.excuses(false, i % 2 == 0) ? 1 : 0;
  EXPECT_EQ(excused, 3);
  EXPECT_FALSE(quiet.excuses(false, false));
}

TEST(disturbance, a_process_that_waits_as_often_as_the_baseline_is_excused) {
  excused_waits busy;
  for (int i = 0; i < 300; ++i) {
    bool excused = busy.excuses(i % 3 == 0, i % 3 == 1);
    EXPECT_EQ(excused, i % 3 == 1) << i;
  }
  for (int i = 0; i < 300; ++i) busy.excuses(false, true); // a debt is not forgotten
  EXPECT_FALSE(busy.excuses(true, true));
}

TEST(disturbance, a_process_that_works_on_is_told_from_one_that_waits_to_stop) {
  auto x = waiting(0);
  EXPECT_FALSE(would_not_stop(x));
  x.still = false;
  x.late_cpu = 1e-3;
  EXPECT_FALSE(would_not_stop(x));
  x.late_cpu = standstill::patience;
  EXPECT_TRUE(would_not_stop(x));
  EXPECT_TRUE(was_disturbed(x, 100e-6)); // the baseline that follows is slowed
}

} // namespace disturbance_test

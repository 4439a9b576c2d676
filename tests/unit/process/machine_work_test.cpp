#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "gpu/process/machine_work.hpp"

using namespace kernelmill;

namespace machine_work_test {

double seconds(double ticks) {
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The first line of a machine of four H100s whose host was busy.
const std::string busy = "cpu  528264 837499 185627 5663342 2115 0 11242 112181 0 0\n"
                         "cpu0 10829 12461 2510 86122 28 0 7720 1993 0 0\n";

TEST(machine_work, is_that_of_all_processors_without_the_idle) {
  auto found = machine_work_in(busy);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->worked, seconds(528264 + 837499 + 185627 + 11242));
  EXPECT_DOUBLE_EQ(found->stolen, seconds(112181));
  EXPECT_NEAR(stolen_percent(machine_work{}, found), 6.7, 0.05);
}

TEST(machine_work, of_a_system_that_does_not_say_is_none) {
  for (const char* text : {"", "cpu", "cpu 1 2 3 4 5 6 7", "intr 1 2 3 4 5 6 7 8", "cpu a b"})
    EXPECT_FALSE(machine_work_in(text)) << text;
  EXPECT_EQ(stolen_percent(std::nullopt, machine_work{1, 1}), 0);
  EXPECT_EQ(stolen_percent(machine_work{1, 1}, std::nullopt), 0);
}

TEST(machine_work, of_which_nothing_is_stolen) {
  EXPECT_EQ(stolen_percent(machine_work{5, 1}, machine_work{9, 1}), 0);
  EXPECT_EQ(stolen_percent(machine_work{5, 1}, machine_work{5, 1}), 0);
  EXPECT_EQ(stolen_percent(machine_work{5, 2}, machine_work{6, 1}), 0); // a counter went back
  EXPECT_DOUBLE_EQ(stolen_percent(machine_work{5, 1}, machine_work{8, 2}), 25);
}

TEST(machine_work, of_this_machine_only_grows) {
  auto before = machine_work_now();
  auto after = machine_work_now();
  ASSERT_TRUE(before && after);
  EXPECT_GT(before->worked, 0);
  EXPECT_GE(after->worked, before->worked);
}

} // namespace machine_work_test

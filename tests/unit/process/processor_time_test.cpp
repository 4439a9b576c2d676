#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "gpu/process/processor_time.hpp"

using namespace kernelmill;

namespace {

double seconds(double ticks) {
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The first line of a machine of four H100s whose host was busy.
const std::string busy = "cpu  528264 837499 185627 5663342 2115 0 11242 112181 0 0\n"
                         "cpu0 10829 12461 2510 86122 28 0 7720 1993 0 0\n";

TEST(processor_time, is_that_of_all_processors_without_the_idle) {
  auto found = processor_time_in(busy);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->worked, seconds(528264 + 837499 + 185627 + 11242));
  EXPECT_DOUBLE_EQ(found->stolen, seconds(112181));
  EXPECT_NEAR(stolen_percent(processor_time{}, found), 6.7, 0.05);
}

TEST(processor_time, of_a_system_that_does_not_say_is_none) {
  for (const char* text : {"", "cpu", "cpu 1 2 3 4 5 6 7", "intr 1 2 3 4 5 6 7 8", "cpu a b"})
    EXPECT_FALSE(processor_time_in(text)) << text;
  EXPECT_EQ(stolen_percent(std::nullopt, processor_time{1, 1}), 0);
  EXPECT_EQ(stolen_percent(processor_time{1, 1}, std::nullopt), 0);
}

TEST(processor_time, of_which_nothing_is_stolen) {
  EXPECT_EQ(stolen_percent(processor_time{5, 1}, processor_time{9, 1}), 0);
  EXPECT_EQ(stolen_percent(processor_time{5, 1}, processor_time{5, 1}), 0);
  EXPECT_EQ(stolen_percent(processor_time{5, 2}, processor_time{6, 1}), 0); // a counter went back
  EXPECT_DOUBLE_EQ(stolen_percent(processor_time{5, 1}, processor_time{8, 2}), 25);
}

TEST(processor_time, of_this_machine_only_grows) {
  auto before = processor_time_now();
  auto after = processor_time_now();
  ASSERT_TRUE(before && after);
  EXPECT_GT(before->worked, 0);
  EXPECT_GE(after->worked, before->worked);
}

} // namespace

// Lines from the processes of a program, which may be anybody's.

#include "gpu/program/program_reports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kernelmill;
using testing::ElementsAre;
using testing::IsEmpty;

namespace program_reports_test {

TEST(program_reports, tell_ends_times_and_replaced_functions) {
  auto x = read_reports("ready\n"
                        "s 7 begin test.out\n"
                        "s 7 replaced exit\n"
                        "s 7 replaced exit\n"
                        "s 7 times 2000000000 3 500000000 1000000000 2 1500000000 1\n"
                        "s 7 end returned 0\n"
                        "s 8 begin helper\n"
                        "s 8 end exit 3\n",
                        "s");
  EXPECT_THAT(x.endings, ElementsAre("helper exit 3", "test.out returned 0"));
  EXPECT_THAT(x.replaced, ElementsAre("test.out defines exit"));
  ASSERT_TRUE(x.times);
  EXPECT_EQ(x.times->kernel_seconds, 2);
  EXPECT_EQ(x.times->kernels, 3u);
  EXPECT_EQ(x.times->other_seconds, 0.5);
  EXPECT_EQ(x.times->range_kernel_seconds, 1);
  EXPECT_EQ(x.times->range_wall_seconds, 1.5);
  EXPECT_EQ(x.times->ranges, 1u);
}

TEST(program_reports, without_the_secret_are_not_read) {
  auto x = read_reports("7 end returned 0\nt 7 end returned 0\ns\ns 7\n\n  s 7 end returned 0\n"
                        "s 7 times x y z\ns 7 times\n",
                        "s");
  EXPECT_THAT(x.endings, IsEmpty());
  ASSERT_TRUE(x.times);
  EXPECT_EQ(x.times->kernel_seconds, 0);
}

TEST(program_reports, are_compared_with_those_of_another_run) {
  EXPECT_FALSE(first_missing({"a returned 0"}, {"a returned 0", "b exit 1"}));
  EXPECT_EQ(first_missing({"a returned 0"}, {"a exit 0"}), "a returned 0");
  EXPECT_EQ(first_missing({"a", "a"}, {"a"}), "a");
}

TEST(program_times, are_the_last_line_that_says_one) {
  EXPECT_NEAR(*printed_seconds("COMPUTE_EVAL_TIME_MS: 9\nx\nCOMPUTE_EVAL_TIME_MS: 1.5\n"), 0.0015,
              1e-12);
  for (const char* text :
       {"", "time 3", "COMPUTE_EVAL_TIME_MS:", "COMPUTE_EVAL_TIME_MS: x", "COMPUTE_EVAL_TIME_MS: 0",
        "COMPUTE_EVAL_TIME_MS: -1", "COMPUTE_EVAL_TIME_MS: nan", "COMPUTE_EVAL_TIME_MS: inf",
        "COMPUTE_EVAL_TIME_MS: 1e300", "COMPUTE_EVAL_TIME_MS: 1.5 ms"})
    EXPECT_FALSE(printed_seconds(text)) << text;
}

} // namespace program_reports_test

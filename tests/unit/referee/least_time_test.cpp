// The least time of a call in contract `torch`.

#include "gpu/torch/least_time.hpp"

#include <gtest/gtest.h>

namespace kernelmill {

namespace least_time_test {

constexpr double sheet = 4.8e12;                 // an H200's
constexpr double weights = 1024.0 * 1024 * 1024; // float32, one gibibyte
constexpr double lossless = (weights - 2 * 50e6) * 0.75;

TEST(least_time, inputs_and_outputs_are_held_against_the_data_sheet_alone) {
  EXPECT_DOUBLE_EQ(least_seconds({4.8e12, 0, 1e12}, sheet), 1 / 1.1);
  EXPECT_DOUBLE_EQ(least_seconds({}, sheet), 0);
}

TEST(least_time, an_unknown_memory_accuses_no_candidate) {
  EXPECT_EQ(least_seconds({1e12, 1e12, 1e12}, 0), 0);
}

TEST(least_time, parameters_are_held_against_what_reading_them_gets) {
  // 16384 x 16384 weights read at 4.15 TB/s; who packs them to 24 bits reads three quarters.
  double least = least_seconds({0, lossless, 4.13e12}, sheet);
  for (double bits : {16.0, 18.0, 20.0}) EXPECT_LT(weights * bits / 32 / 4.29e12, least) << bits;
  EXPECT_GT(weights * 24 / 32 / 4.29e12, least * 1.1);
}

TEST(least_time, a_gpu_that_was_busy_when_it_was_measured_accuses_no_candidate) {
  EXPECT_DOUBLE_EQ(least_seconds({0, sheet, 1e11}, sheet), 1 / 0.85);
  EXPECT_DOUBLE_EQ(least_seconds({0, sheet, 1e14}, sheet), 1 / 1.1);
}

} // namespace least_time_test

} // namespace kernelmill

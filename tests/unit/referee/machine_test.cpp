#include <gtest/gtest.h>

#include "gpu/referee/machine.hpp"

using namespace kernelmill;

namespace machine_test {

TEST(machine, peaks_are_positive_and_the_cache_is_not_slower_than_memory) {
  machine x{{}};
  auto peaks = x.peaks();
  EXPECT_GT(peaks.memory_bytes_per_second, 1e8);
  EXPECT_GE(peaks.cache_bytes_per_second, peaks.memory_bytes_per_second);
  EXPECT_GT(peaks.flops_per_second, 1e8);
  // Printed, not judged: they belong to the machine.
  RecordProperty("memory_gb_s", std::to_string(peaks.memory_bytes_per_second / 1e9));
  std::printf("memory %.1f GB/s, cache %.1f GB/s, %.1f Gflop/s\n",
              peaks.memory_bytes_per_second / 1e9, peaks.cache_bytes_per_second / 1e9,
              peaks.flops_per_second / 1e9);
}

TEST(machine, the_longer_of_both_roofs_counts) {
  machine x{{}};
  auto peaks = x.peaks();
  double small = 1e6; // fits any last-level cache
  EXPECT_NEAR(x.roofline_seconds(1e6, 0, small), 1e6 / peaks.cache_bytes_per_second / 1.05, 1e-12);
  EXPECT_NEAR(x.roofline_seconds(0, 1e9, small), 1e9 / peaks.flops_per_second / 1.05, 1e-9);
  EXPECT_NEAR(x.roofline_seconds(1e9, 0, 1e9), 1e9 / peaks.memory_bytes_per_second / 1.05, 1e-9);
}

} // namespace machine_test

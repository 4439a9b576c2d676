// A GPU of our own, whose clock rises while it works.

#include <gtest/gtest.h>

#include "gpu/referee/device/rousing.hpp"

using namespace kernelmill;

namespace rousing_test {

struct rested_gpu {
  double second = 0;
  double works = 0; // seconds
  double rises_after = 1.6;
  unsigned highest = 1980;

  void rouse(rousing& x) {
    x.rouse(
        [this] {
          second += 0.01;
          works += 0.01;
        },
        [this]() -> std::optional<unsigned> { return works < rises_after ? 345 : highest; },
        [this] { return second; });
  }
};

TEST(rousing, works_until_the_clock_is_up) {
  rousing x{1980};
  rested_gpu gpu;
  gpu.rouse(x);
  EXPECT_GE(gpu.works, gpu.rises_after);
  EXPECT_LT(gpu.works, 1.7);
  gpu.rouse(x);
  EXPECT_LT(gpu.works, 1.7);
}

TEST(rousing, waits_once_for_a_clock_that_is_held_down) {
  rousing x{1980};
  rested_gpu gpu;
  gpu.highest = 1200;
  gpu.rouse(x);
  EXPECT_GT(gpu.works, 2.5);
  EXPECT_LT(gpu.works, 2.6);
  gpu.rouse(x);
  EXPECT_LT(gpu.works, 2.6);
}

TEST(rousing, works_once_where_the_clock_is_unknown) {
  rousing x{1980};
  int works = 0;
  x.rouse([&] { ++works; }, [] { return std::optional<unsigned>{}; }, [] { return 0.0; });
  EXPECT_EQ(works, 1);
}

} // namespace rousing_test

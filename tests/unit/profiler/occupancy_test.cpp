#include "gpu/profiler/occupancy.hpp"

#include <gtest/gtest.h>

using namespace kernelmill;

namespace occupancy_test {

occupancy on_hopper(uint32_t threads, uint32_t registers, uint32_t shared) {
  return occupancy_of(*limits_of("sm_90"), {threads, registers, shared});
}

// Figures by the occupancy tables of the CUDA C++ Programming Guide.
TEST(Occupancy, IsWholeWhereNothingLimits) {
  auto x = on_hopper(256, 32, 0);
  EXPECT_EQ(x.blocks, 8u);
  EXPECT_DOUBLE_EQ(x.share, 1);
  EXPECT_EQ(x.limit, occupancy_limit::warps);
}

TEST(Occupancy, SmallBlocksMeetTheNumberOfBlocks) {
  auto x = on_hopper(32, 16, 0);
  EXPECT_EQ(x.blocks, 32u);
  EXPECT_DOUBLE_EQ(x.share, 0.5);
  EXPECT_EQ(x.limit, occupancy_limit::blocks);
}

TEST(Occupancy, ManyRegistersLeaveFewWarps) {
  auto x = on_hopper(256, 255, 0);
  EXPECT_EQ(x.blocks, 1u);
  EXPECT_DOUBLE_EQ(x.share, 0.125);
  EXPECT_EQ(x.limit, occupancy_limit::registers);
  EXPECT_EQ(on_hopper(1024, 128, 0).blocks, 0u) << "a block that does not fit";
}

TEST(Occupancy, SharedMemoryIsCountedWithWhatTheSystemTakes) {
  auto x = on_hopper(128, 32, 100 << 10);
  EXPECT_EQ(x.blocks, 2u);
  EXPECT_EQ(x.limit, occupancy_limit::shared_memory);
  EXPECT_EQ(on_hopper(128, 32, 227 << 10).blocks, 1u);
  EXPECT_EQ(on_hopper(128, 32, 228 << 10).blocks, 0u);
}

TEST(Occupancy, KnowsArchitecturesByTheirPlainName) {
  EXPECT_TRUE(limits_of("sm_90a"));
  EXPECT_FALSE(limits_of("gfx90a"));
  EXPECT_FALSE(limits_of(""));
  EXPECT_EQ(architecture_in("NVRTC 13.0 -std=c++20 -arch=sm_90"), "sm_90");
  EXPECT_EQ(architecture_in("nvcc 13.0.88 -arch=sm_100a -lineinfo"), "sm_100a");
  EXPECT_EQ(architecture_in("g++ 12.2.0"), "");
}

} // namespace occupancy_test

// What a machine without a GPU is told. One that has a driver cannot show it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/driver.hpp"

using namespace kernelmill;
using testing::HasSubstr;

namespace driver_test {

TEST(cuda_driver, that_is_missing_is_the_machines_fault_and_has_a_next_step) {
  auto x = cuda::open_driver();
  if (x) GTEST_SKIP() << "this machine has a driver: " << (*x)->path;
  EXPECT_EQ(x.error().cls, fault_class::infrastructure);
  EXPECT_EQ(x.error().category, "cuda_missing");
  EXPECT_THAT(x.error().message, HasSubstr("libcuda.so.1"));
  EXPECT_THAT(x.error().hint, HasSubstr("--backend cpu"));
}

TEST(cuda_driver, is_looked_for_once) {
  auto a = cuda::open_driver();
  auto b = cuda::open_driver();
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a) {
    EXPECT_EQ(*a, *b);
  } else {
    EXPECT_EQ(a.error().message, b.error().message);
  }
}

TEST(hip_library, of_this_machine_has_every_function_of_the_table) {
  auto x = cuda::open_driver(cuda::gpu_api::hip);
  if (!x && x.error().message.find("failed to open") != std::string::npos) {
    EXPECT_EQ(x.error().category, "hip_missing");
    EXPECT_THAT(x.error().hint, HasSubstr("--backend cpu"));
    GTEST_SKIP() << "no libamdhip64 on this machine";
  }
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ((*x)->name_of(719), "hipErrorLaunchFailure");
}

TEST(gpu_monitor, without_nvml_is_the_machines_fault_and_has_a_next_step) {
  auto x = cuda::gpu_monitor::open();
  if (x) GTEST_SKIP() << "this machine has a driver: " << x->driver_version();
  EXPECT_EQ(x.error().cls, fault_class::infrastructure);
  if (x.error().category == "no_gpu") GTEST_SKIP() << "this machine has a driver and no GPU";
  EXPECT_EQ(x.error().category, "nvml_missing");
  EXPECT_NE(x.error().hint.find("evaluation.backend=cpu"), std::string::npos);
  EXPECT_THAT(x.error().message, HasSubstr("libnvidia-ml.so.1"));
  EXPECT_THAT(x.error().hint, HasSubstr("--backend cpu"));
}

TEST(gpu_monitor, says_of_each_gpu_what_a_referee_must_know) {
  auto x = cuda::gpu_monitor::open();
  if (!x) GTEST_SKIP() << render(x.error());
  ASSERT_FALSE(x->gpus().empty());
  EXPECT_NE(x->driver_version(), "");
  for (size_t i = 0; i < x->gpus().size(); ++i) {
    const auto& gpu = x->gpus()[i];
    EXPECT_EQ(gpu.index, i);
    EXPECT_NE(gpu.name, "");
    EXPECT_THAT(gpu.uuid, testing::StartsWith("GPU-"));
    EXPECT_THAT(gpu.architecture, testing::StartsWith("sm_"));
    EXPECT_THAT(gpu.node, testing::StartsWith("/dev/nvidia"));
    EXPECT_GT(gpu.memory_bytes, uint64_t{1} << 30);
    EXPECT_GT(x->state(static_cast<unsigned>(i)).clock_mhz, 0u);
  }
}

} // namespace driver_test

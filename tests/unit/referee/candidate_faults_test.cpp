#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/candidate_faults.hpp"

using namespace kernelmill;
using testing::HasSubstr;
using testing::Not;

namespace candidate_faults_test {

TEST(candidate_faults, memory_of_the_host_is_told_with_the_limit_that_holds_there) {
  auto cpu = out_of_memory_fault(uint64_t{1} << 30, false);
  EXPECT_EQ(cpu.category, "out_of_memory");
  EXPECT_EQ(cpu.message, "the candidate wanted more than 1024 MiB of memory");
  auto gpu = out_of_memory_fault(uint64_t{8} << 30, true);
  EXPECT_EQ(gpu.category, "out_of_memory");
  EXPECT_EQ(gpu.message, "the candidate wanted more than 8192 MiB of the host's memory");
}

TEST(candidate_faults, memory_of_the_gpu_is_told_as_such) {
  auto x = device_fault("finish a call (CUDA_ERROR_OUT_OF_MEMORY)");
  EXPECT_EQ(x.cls, fault_class::candidate);
  EXPECT_EQ(x.category, "out_of_memory");
  EXPECT_THAT(x.message, HasSubstr("the GPU's memory"));
  EXPECT_THAT(x.message, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_THAT(x.message, Not(HasSubstr("MiB")));
}

TEST(candidate_faults, a_lost_context_is_an_access_or_something_else) {
  EXPECT_EQ(device_fault("finish a call (CUDA_ERROR_ILLEGAL_ADDRESS)").category, "illegal_access");
  EXPECT_EQ(device_fault("finish a call (CUDA_ERROR_MISALIGNED_ADDRESS)").category,
            "illegal_access");
  EXPECT_EQ(device_fault("finish a call (CUDA_ERROR_ASSERT)").category, "device_error");
}

TEST(candidate_faults, what_the_machine_can_do_to_anybody_wants_a_control) {
  for (const char* category :
       {"crashed", "timed_out", "out_of_memory", "device_error", "exited", "load_failed"})
    EXPECT_TRUE(wants_control({fault_class::candidate, category, "", {}})) << category;
  EXPECT_FALSE(wants_control({fault_class::candidate, "wrong_result", "", {}}));
  EXPECT_FALSE(wants_control({fault_class::none, "", "", {}}));
  EXPECT_TRUE(wants_control({fault_class::infrastructure, "cuda_failed", "", {}}));
  EXPECT_TRUE(wants_control({fault_class::configuration, "bad_baseline", "", {}}));
}

TEST(candidate_faults, the_control_says_whose_fault_it_was) {
  error crash{fault_class::candidate, "crashed", "the candidate crashed", {}};
  EXPECT_EQ(blamed(crash, true).category, "crashed");
  EXPECT_EQ(blamed(crash, false).cls, fault_class::infrastructure);
  for (auto cls : {fault_class::infrastructure, fault_class::configuration}) {
    error ours{cls, "bad_baseline", "its baseline ended", {}};
    EXPECT_EQ(blamed(ours, false).cls, cls);
    auto theirs = blamed(ours, true);
    EXPECT_EQ(theirs.cls, fault_class::candidate);
    EXPECT_EQ(theirs.category, disturbance);
    EXPECT_THAT(theirs.message, HasSubstr("its baseline ended"));
  }
}

} // namespace candidate_faults_test

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/episode/unprofiled.hpp"

using namespace kernelmill;
using testing::HasSubstr;

namespace {

TEST(unprofiled, is_nothing_on_a_cpu) {
  EXPECT_EQ(unprofiled_reason("cpu", false), "");
}

TEST(unprofiled, is_what_runs_on_a_gpu_and_says_so) {
  EXPECT_THAT(unprofiled_reason("cuda", false), HasSubstr("GPU"));
  EXPECT_THAT(unprofiled_reason("hip", false), HasSubstr("GPU"));
}

TEST(unprofiled, is_a_module_in_python) {
  EXPECT_THAT(unprofiled_reason("cpu", true), HasSubstr("Python"));
  EXPECT_THAT(unprofiled_reason("cuda", true), HasSubstr("Python"));
}

} // namespace

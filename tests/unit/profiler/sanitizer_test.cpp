// Reports of compute-sanitizer: golden/*check_*.txt.

#include "gpu/profiler/sanitizer_report.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/profiler/golden.hpp"

using namespace kernelmill;
using testing::HasSubstr;

namespace sanitizer_test {

sanitizer_report golden_report(const std::string& name) {
  return read_sanitizer_report(golden(name));
}

TEST(Sanitizer, AWriteOutOfBoundsHasItsPlaceThreadAndAddress) {
  auto x = golden_report("memcheck_by_format.txt");
  EXPECT_EQ(x.problem, sanitizer_problem::none);
  EXPECT_EQ(x.errors, 5u);
  ASSERT_EQ(x.findings.size(), 4u);
  const auto& f = x.findings[0];
  EXPECT_EQ(f.family, memory_fault::out_of_bounds);
  EXPECT_EQ(f.space, "global");
  EXPECT_EQ(f.access, "write");
  EXPECT_EQ(f.bytes, 4u);
  EXPECT_EQ(f.at.kernel, "scale(float *, int)");
  EXPECT_EQ(f.at.file, "kernel.cu");
  EXPECT_EQ(f.at.line, 14u);
  EXPECT_EQ(f.at.offset, "0x150");
  EXPECT_EQ(f.thread, "(31,0,0)");
  EXPECT_EQ(f.block, "(7,0,0)");
  EXPECT_EQ(f.address, "0x7f8a40000400");
  EXPECT_EQ(f.times, 2u) << "the same place in another thread";
  EXPECT_THAT(f.hint, HasSubstr("index"));
}

TEST(Sanitizer, AMisalignedReadALeakAndAFailedCallAreTold) {
  auto x = golden_report("memcheck_by_format.txt");
  ASSERT_EQ(x.findings.size(), 4u);
  EXPECT_EQ(x.findings[1].family, memory_fault::misaligned);
  EXPECT_EQ(x.findings[1].space, "shared");
  EXPECT_EQ(x.findings[1].at.kernel, "tile(float4 *)");
  EXPECT_EQ(x.findings[1].at.line, 0u) << "built without -lineinfo";
  EXPECT_EQ(x.findings[2].family, memory_fault::api_error);
  EXPECT_EQ(x.findings[3].family, memory_fault::leak);
}

TEST(Sanitizer, ARaceHasBothSides) {
  auto x = golden_report("racecheck_by_format.txt");
  EXPECT_EQ(x.errors, 1u);
  EXPECT_EQ(x.warnings, 1u);
  ASSERT_EQ(x.findings.size(), 2u);
  const auto& f = x.findings[0];
  EXPECT_EQ(f.family, memory_fault::race);
  EXPECT_FALSE(f.is_warning);
  EXPECT_EQ(f.at.kernel, "void reduce<(int)256>(float *)");
  EXPECT_EQ(f.at.line, 28u);
  EXPECT_EQ(f.hazards, 1028u);
  ASSERT_EQ(f.others.size(), 2u);
  EXPECT_EQ(f.others[0].line, 30u);
  EXPECT_TRUE(x.findings[1].is_warning);
  EXPECT_EQ(x.findings[1].at.kernel, "test(int*, int*)");
}

TEST(Sanitizer, UninitializedReadsAndBarriersAreFamiliesOfTheirOwn) {
  auto x = golden_report("initcheck_by_format.txt");
  ASSERT_EQ(x.findings.size(), 1u);
  EXPECT_EQ(x.findings[0].family, memory_fault::uninitialized);
  EXPECT_EQ(x.findings[0].access, "read");
  EXPECT_EQ(x.findings[0].address, "0x7fd2a0000040");
  auto y = golden_report("synccheck_by_format.txt");
  ASSERT_EQ(y.findings.size(), 1u);
  EXPECT_EQ(y.findings[0].family, memory_fault::barrier);
  EXPECT_EQ(y.findings[0].at.line, 9u);
}

TEST(Sanitizer, OlderToolsNameTheFileBeforeTheKernel) {
  auto x = read_sanitizer_report("========= Invalid __global__ write of size 4 bytes\n"
                                 "=========     at 0x3c8 in U:/work/sln.cu:42:affine(int*,int*)\n"
                                 "========= ERROR SUMMARY: 1 error\n");
  ASSERT_EQ(x.findings.size(), 1u);
  EXPECT_EQ(x.findings[0].at.file, "sln.cu");
  EXPECT_EQ(x.findings[0].at.line, 42u);
  EXPECT_EQ(x.findings[0].at.kernel, "affine(int*,int*)");
}

TEST(Sanitizer, ACleanRunHasNoFindingAndNoProblem) {
  auto x =
      read_sanitizer_report("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n");
  EXPECT_EQ(x.problem, sanitizer_problem::none);
  EXPECT_TRUE(x.findings.empty());
  EXPECT_EQ(x.errors, 0u);
}

TEST(Sanitizer, AToolThatCouldNotWorkIsAProblemAndNoCleanRun) {
  EXPECT_EQ(read_sanitizer_report("").problem, sanitizer_problem::no_report);
  EXPECT_EQ(read_sanitizer_report("========= COMPUTE-SANITIZER\n").problem,
            sanitizer_problem::no_report);
  EXPECT_EQ(
      read_sanitizer_report("========= Error: Device not supported. Please refer to it\n").problem,
      sanitizer_problem::not_supported);
}

TEST(Sanitizer, NoNumberOfWarningsHidesAnError) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "========= Warning: Race reported between Write access at f(float *)+0x" +
            std::to_string(i) + "\n";
  text += "========= Error: Race reported between Write access at g(float *)+0x60\n";
  auto x = read_sanitizer_report(text);
  EXPECT_EQ(x.findings.size(), 64u);
  EXPECT_TRUE(std::any_of(x.findings.begin(), x.findings.end(),
                          [](auto& f) { return !f.is_warning && f.at.kernel == "g(float *)"; }));
}

} // namespace sanitizer_test

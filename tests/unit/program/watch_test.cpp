// The library in a program's processes, with a CUPTI that is made here.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/program/program_reports.hpp"
#include "messages/base/descriptor.hpp"

using namespace kernelmill;
using testing::ElementsAre;
using testing::IsEmpty;

namespace program_watch_test {

std::string beside_tests(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

// What a run reports, and its exit code.
std::pair<program_reports, int> watched(const std::string& mode, const std::string& patterns,
                                        std::string argument = {}) {
  auto cupti = beside_tests("libfake_cupti.so");
  auto program = beside_tests("ranged_program");
  auto library = beside_tests("../lib/kernelmill/libkernelmill-program.so");
  if (argument.empty()) argument = cupti;
  auto ends = make_pipe();
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends.write.get(), 9);
    auto wishes = "9\nsecret\n" + mode + "\n" + cupti + "\n" + patterns;
    ::setenv("KERNELMILL_PROGRAM", wishes.c_str(), 1);
    ::setenv("LD_PRELOAD", library.c_str(), 1);
    ::setenv("NVTX_INJECTION64_PATH", library.c_str(), 1);
    ::execl("/bin/sh", "sh", "-c", (program + " " + argument + "; exit $?").c_str(), nullptr);
    ::_exit(99);
  }
  ends.write.reset();
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t n = 0; (n = read_retrying(ends.read.get(), part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<size_t>(n));
  int status = 0;
  ::waitpid(child, &status, 0);
  return {read_reports(text, "secret"), WEXITSTATUS(status)};
}

TEST(program_watch, adds_up_the_work_of_ranges_that_count) {
  auto [x, code] = watched("region", "+timed\n");
  EXPECT_EQ(code, 0);
  EXPECT_THAT(x.endings, ElementsAre("ranged_program returned 0"));
  ASSERT_TRUE(x.times) << testing::PrintToString(x.problems);
  EXPECT_NEAR(x.times->range_kernel_seconds, 320e-6, 1e-9); // the inner range is part of it
  EXPECT_EQ(x.times->range_kernels, 2u);
  EXPECT_EQ(x.times->ranges, 1u);
  EXPECT_NEAR(x.times->kernel_seconds, 4321e-6, 1e-9);
  EXPECT_NEAR(x.times->other_seconds, 0.05, 1e-9);
}

TEST(program_watch, takes_all_ranges_where_none_is_named) {
  auto [x, code] = watched("region", "-tim*\n");
  ASSERT_TRUE(x.times);
  EXPECT_NEAR(x.times->range_kernel_seconds, 4300e-6, 1e-9);
}

TEST(program_watch, counts_kernels_by_their_names) {
  EXPECT_NEAR(watched("kernels", "+*my_kernel*\n").first.times->kernel_seconds, 4321e-6, 1e-9);
  EXPECT_EQ(watched("kernels", "+other\n").first.times->kernels, 0u);
}

TEST(program_watch, tells_a_main_that_returned_from_an_end_before) {
  auto [left, code] = watched("process", "", "exit");
  EXPECT_EQ(code, 4);
  EXPECT_THAT(left.endings, ElementsAre("ranged_program exit 4"));
  EXPECT_THAT(watched("process", "", "_exit").first.endings, IsEmpty());
}

TEST(program_watch, names_functions_of_libraries_that_a_program_defines) {
  EXPECT_THAT(watched("process", "", "exit").first.replaced,
              ElementsAre("ranged_program defines puts"));
}

} // namespace program_watch_test

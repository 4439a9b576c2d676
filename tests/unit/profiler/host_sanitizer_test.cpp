// Texts as g++ 12's sanitizers write them, cut.

#include "gpu/profiler/host_sanitizer_report.hpp"

#include <gtest/gtest.h>

namespace kernelmill {
namespace host_sanitizer_test {

TEST(host_sanitizer, an_overflow_of_the_heap_has_place_access_and_what_it_is_beside) {
  auto x = read_host_sanitizer_report(
      "==2==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x617000 at pc 0x7f bp 0x7f\n"
      "READ of size 4 at 0x617000 thread T1\n"
      "    #0 0x7fb9 in std::vector<float>::operator[](unsigned long) /usr/include/v.h:1123\n"
      "    #1 0x7fb9 in solve._omp_fn.0 /build/kernel.cpp:8\n"
      "    #2 0x7fb8  (/lib/x86_64-linux-gnu/libgomp.so.1+0x1cd8d)\n"
      "\n"
      "0x617000 is located 0 bytes to the right of 320-byte region [0x616,0x617)\n"
      "allocated by thread T0 here:\n"
      "    #0 0x7fb9 in other /build/kernel.cpp:3\n"
      "\n"
      "SUMMARY: AddressSanitizer: heap-buffer-overflow /build/kernel.cpp:8 in solve\n"
      "end\n",
      "end");
  ASSERT_EQ(x.findings.size(), 1u);
  const auto& one = x.findings[0];
  EXPECT_EQ(one.family, memory_fault::out_of_bounds);
  EXPECT_EQ(one.words, "heap-buffer-overflow (0 bytes to the right of 320-byte region)");
  EXPECT_EQ(one.space + " " + one.access + " " + one.thread + " " + one.address,
            "heap read T1 0x617000");
  EXPECT_EQ(one.bytes, 4u);
  EXPECT_EQ(one.at.kernel, "solve._omp_fn.0");
  EXPECT_EQ(one.at.line, 8u);
  EXPECT_EQ(x.errors, 1u);
}

TEST(host_sanitizer, a_race_has_both_sides) {
  auto x = read_host_sanitizer_report(
      "WARNING: ThreadSanitizer: data race (pid=2)\n"
      "  Write of size 4 at 0x7ffe by thread T1:\n"
      "    #0 solve._omp_fn.0 /build/kernel.cpp:8 (3+0x12f5)\n"
      "\n"
      "  Previous read of size 4 at 0x7ffe by main thread:\n"
      "    #0 solve._omp_fn.0 /build/kernel.cpp:5 (3+0x124a)\n"
      "\n"
      "  Location is stack of main thread.\n"
      "\n"
      "  Thread T1 (tid=5, running) created by main thread at:\n"
      "    #0 pthread_create ../tsan.cpp:1001 (libtsan.so+0x5e686)\n"
      "SUMMARY: ThreadSanitizer: data race /build/kernel.cpp:8 in solve._omp_fn.0\n",
      "end");
  ASSERT_EQ(x.findings.size(), 1u);
  EXPECT_EQ(x.findings[0].family, memory_fault::race);
  EXPECT_EQ(x.findings[0].access + x.findings[0].space, "writestack");
  EXPECT_EQ(x.findings[0].at.line, 8u);
  ASSERT_EQ(x.findings[0].others.size(), 1u);
  EXPECT_EQ(x.findings[0].others[0].line, 5u);
}

TEST(host_sanitizer, undefined_behaviour_has_its_line) {
  auto x = read_host_sanitizer_report(
      "kernel.cpp:7:12: runtime error: shift exponent 37 is too large for 32-bit type 'int'\n"
      "    #0 0x7f in solve /build/kernel.cpp:7\n"
      "kernel.cpp:9:3: runtime error: load of misaligned address 0x7f for type 'const long'\n",
      "end");
  ASSERT_EQ(x.findings.size(), 2u);
  EXPECT_EQ(x.findings[0].family, memory_fault::undefined);
  EXPECT_EQ(x.findings[0].at.kernel, "solve");
  EXPECT_EQ(x.findings[0].at.line, 7u);
  EXPECT_EQ(x.findings[1].family, memory_fault::misaligned);
}

// A candidate writes to the same descriptor.
TEST(host_sanitizer, frames_that_end_in_the_middle_end_no_reader) {
  for (std::string frame :
       {"    #0 0x7f in f)\n", "    #0 )\n", "    #0\n", "    #0 0x7f in (\n"}) {
    auto x =
        read_host_sanitizer_report("==1==ERROR: AddressSanitizer: x\n" + frame + "end\n", "end");
    EXPECT_EQ(x.findings.size(), 1u) << frame;
  }
}

TEST(host_sanitizer, without_the_last_line_is_no_report) {
  EXPECT_EQ(read_host_sanitizer_report("hello\n", "end").problem, sanitizer_problem::no_report);
  EXPECT_EQ(read_host_sanitizer_report("hello\nend\n", "end").problem, sanitizer_problem::none);
  auto x =
      read_host_sanitizer_report("FATAL: ThreadSanitizer: unexpected memory mapping 0x7f\n", "end");
  EXPECT_EQ(x.problem, sanitizer_problem::not_supported);
}

} // namespace host_sanitizer_test
} // namespace kernelmill

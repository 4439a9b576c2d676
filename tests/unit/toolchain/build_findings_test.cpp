#include "gpu/toolchain/build_findings.hpp"

#include <gmock/gmock.h>

namespace kernelmill {
namespace build_findings_test {

using testing::HasSubstr;

error judged(core_use cores, bool timed_out = true) {
  compiler_outcome x;
  x.status = {-1, SIGKILL};
  x.timed_out = timed_out;
  x.seconds = 60;
  x.cores = cores;
  return fault_of_compiler(x, {}, 60'000);
}

TEST(a_compiler_that_reached_its_deadline,
     is_the_candidates_fault_if_it_had_a_core_or_wanted_none) {
  for (auto cores : {core_use{16, true}, core_use{1, false}}) {
    auto fault = judged(cores);
    EXPECT_EQ(fault.cls, fault_class::candidate);
    EXPECT_EQ(fault.category, "compile_timeout");
  }
}

TEST(a_compiler_that_reached_its_deadline, is_the_machines_fault_if_it_had_none) {
  auto fault = judged({14, true});
  EXPECT_EQ(fault.cls, fault_class::infrastructure);
  EXPECT_EQ(fault.category, "machine_busy");
  EXPECT_THAT(fault.message, HasSubstr("of 60.00 s the compiler had a core for 14.00 s"));
}

TEST(a_compiler_that_reached_its_deadline, is_the_machines_fault_if_it_was_stopped) {
  EXPECT_EQ(judged({1, false, true}).category, "machine_busy");
}

TEST(a_compiler_that_was_killed, is_the_machines_fault_if_no_source_can_have_said_so) {
  compiler_outcome x;
  x.killed = true;
  EXPECT_EQ(fault_of_compiler(x, {}, 60'000).cls, fault_class::infrastructure);
  x.killed = false;
  x.text = "collect2: fatal error: ld terminated with signal 9 [Killed]";
  EXPECT_EQ(fault_of_compiler(x, {}, 60'000).category, "compile_memory");
}

TEST(a_compiler_that_ended_early, is_judged_by_what_it_said) {
  EXPECT_EQ(judged({14, true}, false).category, "compile_error");
}

} // namespace build_findings_test
} // namespace kernelmill

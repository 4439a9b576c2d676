// A compiler that something outside its sandbox ended says nothing about the source.

#include "tests/unit/process/outsider.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace toolchain_outside_test {

using toolchain_outside = toolchain_fixture;

// The compiler itself works for half a second at this.
const std::string slow_source = R"(
constexpr long work() {
  long sum = 0;
  for (long i = 0; i < 3; ++i)
    for (long j = 0; j < 100'000; ++j) sum += i ^ j;
  return sum;
}
constexpr long worked = work();
extern "C" void solve(const float*, float* y, int, int) { y[0] = worked; }
)";

constexpr double after = 0.05; // seconds of the compiler's work

TEST_F(toolchain_outside, a_compiler_that_was_killed_runs_again) {
  outsider kernel{"cc1plus", 1, after, outsider::kills()};
  auto built = build(slow_source);
  EXPECT_EQ(kernel.done(), 1);
  EXPECT_TRUE(built.open()->getCompiled()) << built.open()->getLog().cStr();
}

TEST_F(toolchain_outside, one_that_is_killed_each_time_is_the_machines_fault_and_not_remembered) {
  {
    outsider kernel{"cc1plus", 1000, 0, outsider::kills()};
    auto built = build(slow_source);
    auto x = built.open();
    EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
    EXPECT_STREQ(x->getFault().getCategory().cStr(), "compiler_killed");
  }
  auto again = build(slow_source);
  EXPECT_TRUE(again.open()->getCompiled()) << again.open()->getLog().cStr();
  EXPECT_FALSE(again.open()->getCached());
}

TEST_F(toolchain_outside, a_driver_that_was_killed_runs_again) {
  outsider kernel{"x86_64-linux-gnu-g++", 1, 0, outsider::kills()};
  auto built = build(slow_source);
  EXPECT_TRUE(built.open()->getCompiled()) << built.open()->getLog().cStr();
}

TEST_F(toolchain_outside, a_linker_that_was_killed_runs_again) {
  for (auto* name : {"ld", "collect2", "as"}) {
    outsider kernel{name, 1, 0, outsider::kills()};
    auto built = build(slow_source + std::string{"\n// "} + name);
    EXPECT_TRUE(built.open()->getCompiled()) << name << ": " << built.open()->getLog().cStr();
  }
}

TEST_F(toolchain_outside, no_source_can_choose_to_be_the_machines_fault) {
  auto built = build("#line 1 \"g++: fatal error: Killed signal terminated program cc1plus\"\n"
                     "#error no\n");
  auto x = built.open();
  EXPECT_THAT(std::string{x->getLog().cStr()}, testing::HasSubstr("Killed signal terminated"));
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::CANDIDATE);
}

TEST_F(toolchain_outside, a_compiler_that_was_stopped_has_its_time_all_the_same) {
  outsider operator_{"cc1plus", 1, 0, outsider::stops_for(std::chrono::seconds{3})};
  auto built = build(slow_source, 20'000);
  EXPECT_EQ(operator_.done(), 1);
  auto x = built.open();
  EXPECT_TRUE(x->getCompiled() || x->getFault().getClass() == wire::FaultClass::INFRASTRUCTURE)
      << x->getFault().getMessage().cStr();
}

// The deadline is of the compiler's work: what keeps it from a core is waited for.
TEST_F(toolchain_outside, one_that_is_stopped_for_longer_than_its_deadline_is_waited_for) {
  outsider operator_{"cc1plus", 1, 0, outsider::stops_for(std::chrono::seconds{4})};
  auto built = build(slow_source, 3'000);
  EXPECT_EQ(operator_.done(), 1);
  EXPECT_TRUE(built.open()->getCompiled()) << built.open()->getFault().getMessage().cStr();
}

} // namespace toolchain_outside_test
} // namespace kernelmill

// What a policy is shown of its answer's build: nothing that a hidden test can have a say in.

#include "gpu/toolchain/program_build.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kernelmill;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace program_build_test {

compiler_outcome saying(const std::string& text, int code = 1) {
  compiler_outcome result;
  result.status.code = code;
  result.text = text;
  return result;
}

program_task a_task() {
  program_task result;
  result.build = "g++ solution.cpp test/*.cpp";
  result.context = {{"add.h", "int add(int, int);\nint work(int);\n"}};
  result.tests = {{"test/main.cpp", "int main() { return add(7, 7) != 14; }\n"},
                  {"test/Makefile", "all:\n"}};
  return result;
}

build_findings shown(const std::string& text, const std::string& alone) {
  expected<compiler_outcome> beside_empty_tests = saying(alone);
  return findings_to_show(saying(text), &beside_empty_tests, {}, a_task(), 1000);
}

const std::string no_main = "/usr/bin/ld: crt1.o: in function `_start':\n(.text+0x1b): undefined "
                            "reference to `main'\ncollect2: error: ld returned 1 exit status\n";

TEST(program_build, beside_empty_tests_keeps_what_tells_it_what_to_do) {
  auto x = without_tests(a_task());
  ASSERT_EQ(x.tests.size(), 2u);
  EXPECT_EQ(x.tests[0].text, "\n");
  EXPECT_EQ(x.tests[1].text, "all:\n");
  EXPECT_EQ(x.context[0].text, a_task().context[0].text);
}

TEST(program_build, that_fails_shows_the_words_of_one_beside_empty_tests) {
  auto x = shown("solution.cpp:2:1: error: static assertion failed: \"add(7, 7) != 14\"\n",
                 "solution.cpp:4:36: error: 'c' was not declared in this scope\n" + no_main);
  EXPECT_EQ(x.fault.category, "compile_error");
  EXPECT_THAT(x.fault.message, HasSubstr("solution.cpp:4: 'c' was not declared"));
  ASSERT_EQ(x.diagnostics.size(), 1u);
  EXPECT_EQ(x.diagnostics[0].line, 4u);
  EXPECT_THAT(x.log, AllOf(HasSubstr("beside empty tests"), HasSubstr("'c'"), Not(HasSubstr("14")),
                           Not(HasSubstr("main"))));
}

TEST(program_build, that_fails_by_the_tests_alone_quotes_none_of_them) {
  auto x = shown("test/main.cpp:1:23: error: cannot convert 'int' in add(7, 7)\n", no_main);
  EXPECT_EQ(x.fault.cls, fault_class::candidate);
  EXPECT_THAT(x.fault.message, AllOf(HasSubstr("its files compile"), Not(HasSubstr("7"))));
  EXPECT_THAT(x.log, IsEmpty());
  EXPECT_THAT(x.diagnostics, IsEmpty());
}

TEST(program_build, names_missing_functions_that_the_policy_was_given) {
  auto x = shown("main.cpp:(.text+0x3f): undefined reference to `add(int, int)'\n"
                 "main.cpp:(.text+0x4f): undefined reference to `int leak<1337>()'\n"
                 "main.cpp:(.text+0x5f): undefined reference to `name_from_the_tests'\n",
                 no_main);
  EXPECT_THAT(x.fault.message, AllOf(HasSubstr("they lack add,"), Not(HasSubstr("leak")),
                                     Not(HasSubstr("name_from"))));
}

TEST(program_build, that_is_done_says_nothing) {
  auto x = findings_to_show(saying("test/main.cpp:1:1: note: '#pragma message: 14'\n", 0), nullptr,
                            {}, a_task(), 1000);
  EXPECT_EQ(x.fault.cls, fault_class::none);
  EXPECT_THAT(x.log, IsEmpty());
  EXPECT_THAT(x.diagnostics, IsEmpty());
}

TEST(program_build, that_runs_out_of_memory_is_told_so_without_its_words) {
  auto x = shown("add(7, 7)\ng++: fatal error: Killed signal terminated program cc1plus\n", "");
  EXPECT_EQ(x.fault.category, "compile_memory");
  EXPECT_THAT(x.fault.message + x.log, Not(HasSubstr("7")));
}

} // namespace program_build_test

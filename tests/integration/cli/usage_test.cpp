#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace {

using testing::HasSubstr;
using testing::Not;

TEST(usage, no_command_prints_help_on_stderr_and_is_2) {
  auto x = kernelmill({});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.out, "");
  EXPECT_THAT(x.err, HasSubstr("Usage: kernelmill"));
}

TEST(usage, a_misspelt_command_names_the_right_one) {
  auto x = kernelmill({"evla", "--task", "x"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.out, "");
  EXPECT_THAT(x.err, HasSubstr("did you mean `kernelmill eval`?"));
}

TEST(usage, a_misspelt_verb_names_the_right_one) {
  EXPECT_THAT(kernelmill({"task", "lst"}).err, HasSubstr("did you mean `kernelmill task list`?"));
  EXPECT_THAT(kernelmill({"task"}).err, HasSubstr("task check"));
}

TEST(usage, a_misspelt_option_names_the_right_one) {
  auto x = kernelmill({"eval", "--tsk", "native/row_sum", "x.cpp"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("there is no option '--tsk'"));
  EXPECT_THAT(x.err, HasSubstr("did you mean '--task'?"));
}

TEST(usage, missing_and_surplus_arguments_are_2_with_a_next_step) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"eval"},
           {"eval", "x.cpp"},
           {"show"},
           {"version", "surplus"},
           {"run"},
           {"completion"},
           {"completion", "csh"},
           {"eval", "--task"},
           {"eval", "--task", "a", "--task", "b", "x.cpp"},
           {"doctor", "--color", "blue"},
           {"policy", "scripted", "--script", "x", "--port", "70000"},
           {"--no-such"}}) {
    auto x = kernelmill(arguments);
    EXPECT_EQ(x.code, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(x.out, "") << testing::PrintToString(arguments);
    EXPECT_FALSE(x.err.empty());
  }
}

TEST(usage, errors_under_json_are_one_document_on_stderr) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"--json", "evla"},
                                             {"eval", "--json"},
                                             {"version", "--jsn", "--json"},
                                             {"--json"},
                                             {"show", "nothing", "--json"}}) {
    auto x = kernelmill(arguments);
    EXPECT_NE(x.code, 0);
    EXPECT_EQ(x.out, "");
    auto fault = x.fault();
    ASSERT_TRUE(fault.is_object()) << x.err;
    for (const auto* key : {"class", "category", "message", "hint"})
      EXPECT_TRUE(fault[key].is_string()) << key;
    EXPECT_NE(fault["hint"], "");
  }
}

TEST(usage, control_bytes_of_arguments_do_not_reach_the_terminal) {
  EXPECT_THAT(kernelmill({"\x1b[31mred"}).err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(kernelmill({"run", "--\x1b[2J"}).err, Not(HasSubstr("\x1b")));
}

TEST(usage, colours_follow_the_flag_and_the_environment) {
  EXPECT_THAT(kernelmill({"show", "nothing", "--color=always"}).err, HasSubstr("\x1b["));
  EXPECT_THAT(kernelmill({"show", "nothing"}).err, Not(HasSubstr("\x1b[")));
  program_options no_colour;
  no_colour.environment = {"CLICOLOR_FORCE=1", "NO_COLOR=1"};
  EXPECT_THAT(kernelmill({"show", "nothing"}, no_colour).err, Not(HasSubstr("\x1b[")));
  program_options forced;
  forced.environment = {"CLICOLOR_FORCE=1"};
  EXPECT_THAT(kernelmill({"show", "nothing"}, forced).err, HasSubstr("\x1b["));
}

TEST(usage, a_stdout_that_is_full_is_an_error) {
  auto x = run_program({"/bin/sh", "-c", binary() + " config schema > /dev/full"});
  EXPECT_EQ(x.code, 1);
  EXPECT_THAT(x.err, HasSubstr("failed to write to stdout"));
}

} // namespace

} // namespace kernelmill::test

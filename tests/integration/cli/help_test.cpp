#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace help_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  for (size_t begin = 0; begin <= text.size();) {
    auto end = std::min(text.find(' ', begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

TEST(help, of_every_command_shows_an_example_first_and_ends_well) {
  for (const auto& name :
       {"run", "resume", "eval", "show", "ps", "doctor", "task list", "task show", "task check",
        "cluster init", "policy scripted", "index build", "index query", "config show",
        "config validate", "config schema", "completion", "version"}) {
    auto typed = words(name);
    typed.push_back("--help");
    auto x = kernelmill(typed);
    EXPECT_EQ(x.code, 0) << name;
    EXPECT_THAT(x.out, StartsWith("Example")) << name;
    EXPECT_THAT(x.out, HasSubstr("kernelmill " + std::string{name})) << name;
    EXPECT_THAT(x.out, HasSubstr("--json")) << name;
    EXPECT_EQ(x.err, "") << name;
  }
}

TEST(help, of_the_program_lists_the_commands) {
  auto x = kernelmill({"--help"});
  EXPECT_EQ(x.code, 0);
  EXPECT_THAT(x.out, StartsWith("Example"));
  for (const auto* name : {"run", "resume", "eval", "task check", "doctor", "show", "ps",
                           "policy scripted", "completion"})
    EXPECT_THAT(x.out, HasSubstr(name));
}

TEST(help, of_the_program_groups_the_commands) {
  auto x = kernelmill({"--help"});
  EXPECT_THAT(x.out, HasSubstr("\n\nJudge kernels:\n  eval "));
  EXPECT_THAT(x.out, HasSubstr("\n\nClusters:\n  cluster init "));
  EXPECT_THAT(kernelmill({"cluster", "--help"}).out, Not(HasSubstr("Clusters:")));
}

TEST(help, keeps_the_longest_name_apart_from_its_summary) {
  EXPECT_THAT(kernelmill({"--help"}).out, HasSubstr("  import kernel-rl-traces  Imports "));
  EXPECT_THAT(kernelmill({"import", "--help"}).out,
              HasSubstr("  import kernel-rl-traces  Imports "));
}

TEST(help, works_as_a_command_and_for_a_noun) {
  EXPECT_EQ(kernelmill({"help", "eval"}).out, kernelmill({"eval", "--help"}).out);
  EXPECT_THAT(kernelmill({"task", "--help"}).out, HasSubstr("task check"));
}

TEST(help, needs_no_required_arguments) {
  EXPECT_EQ(kernelmill({"eval", "-h"}).code, 0);
}

TEST(version, says_the_same_in_both_forms) {
  auto x = kernelmill({"version", "--json"}).document();
  ASSERT_TRUE(x.is_object());
  EXPECT_EQ(x["schema_version"], 1);
  EXPECT_EQ(x["libraries"]["caf"], "0.17.6");
  EXPECT_THAT(kernelmill({"--version"}).out, HasSubstr(x["version"].get<std::string>()));
}

TEST(reference, pages_that_are_made_from_tables_are_up_to_date) {
  for (std::string page : {"cli", "errors", "tools"}) {
    auto made = kernelmill({"__reference", page});
    auto file = run_program({"/bin/cat", source_file("docs/reference/" + page + ".md")});
    EXPECT_TRUE(made.out == file.out) << "run: build/bin/kernelmill __reference " << page
                                      << " > docs/reference/" << page << ".md";
  }
}

} // namespace help_test

} // namespace kernelmill::test

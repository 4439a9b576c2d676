#include "actors/search/search_prompt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelmill::search_prompt_test {

using namespace search;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

searched_episode right(const std::string& name, double low, const std::string& source) {
  searched_episode x;
  x.name = name;
  x.what = {node_state::verified, {}, low, low * 1.05, low * 1.1, source, "plain"};
  x.source = source;
  x.language = "cpp";
  x.category = "success";
  x.idea = "idea of " + name;
  x.report = "accepted (success)\nGates: format pass\nProfile: limited by memory_bandwidth\n";
  return x;
}

searched_episode wrong(const std::string& name, uint32_t parent) {
  searched_episode x;
  x.name = name;
  x.parent = "g0.e" + std::to_string(parent);
  x.what = {node_state::failed, parent, 0, 0, 0, "source of " + name, "plain"};
  x.source = "source of " + name;
  x.category = "compile_error";
  x.idea = "idea of " + name;
  x.report = "rejected (compile_error)\nGates: build FAIL\nCompiler:\nkernel.cpp:3:1: error: why\n";
  return x;
}

} // namespace

TEST(search_prompt, says_nothing_before_anything_was_tried) {
  EXPECT_EQ(search_prompt({}, {}, {}), "");
}

TEST(search_prompt, shows_the_parent_with_its_profile_and_what_failed_on_it) {
  std::vector<searched_episode> tried{right("g0.e0", 2, "int parent;"), right("g0.e1", 3, "int b;"),
                                      wrong("g1.e0", 0), wrong("g1.e1", 1)};
  auto text = search_prompt(tried, 0, {});
  EXPECT_THAT(text, HasSubstr("4 kernels were tried for this task; 2 are right"));
  EXPECT_THAT(text, HasSubstr("The fastest is g0.e1: 3.15x"));
  EXPECT_THAT(text, HasSubstr("## The kernel to improve: g0.e0\n```cpp\nint parent;\n```"));
  EXPECT_THAT(text, HasSubstr("Profile: limited by memory_bandwidth"));
  EXPECT_THAT(text, HasSubstr("Changes to it that failed:\n- g1.e0 (compile_error), idea: idea of "
                              "g1.e0\n  Compiler: kernel.cpp:3:1: error: why\n"));
  EXPECT_THAT(text, Not(HasSubstr("- g1.e1 (compile_error), idea"))); // another one's child
  EXPECT_THAT(text, Not(HasSubstr("int b;")));
}

TEST(search_prompt, asks_for_a_failed_parent_to_be_mended) {
  std::vector<searched_episode> tried{right("g0.e0", 2, "int a;"), wrong("g1.e0", 0)};
  auto text = search_prompt(tried, 1, {});
  EXPECT_THAT(text, HasSubstr("## The kernel to mend: g1.e0"));
  EXPECT_THAT(text, HasSubstr("kernel.cpp:3:1: error: why"));
}

TEST(search_prompt, offers_a_change_to_the_parent_where_answers_may_be_changes) {
  std::vector<searched_episode> tried{right("g0.e0", 2, "int a;")};
  EXPECT_THAT(search_prompt(tried, 0, {}), Not(HasSubstr("<PATCH>")));
  prompt_limits limits;
  limits.patches = true;
  EXPECT_THAT(search_prompt(tried, 0, limits), HasSubstr("between <PATCH> and </PATCH>"));
  EXPECT_THAT(search_prompt(tried, {}, limits), Not(HasSubstr("<PATCH>")));
}

TEST(search_prompt, lists_what_was_tried_for_one_that_begins_anew) {
  std::vector<searched_episode> tried{right("g0.e0", 2, "int a;"), wrong("g1.e0", 0)};
  auto text = search_prompt(tried, {}, {});
  EXPECT_THAT(text, HasSubstr("- g1.e0, from g0.e0: failed (compile_error). Idea: idea of g1.e0"));
  EXPECT_THAT(text, HasSubstr("Take another way than these."));
  EXPECT_THAT(text, Not(HasSubstr("int a;")));
}

TEST(search_prompt, a_long_ledger_keeps_the_fastest_and_the_latest) {
  std::vector<searched_episode> tried;
  for (int i = 0; i < 20; ++i)
    tried.push_back(right("g" + std::to_string(i) + ".e0", i == 3 ? 9 : 1, std::to_string(i)));
  prompt_limits limits;
  limits.ledger = 4;
  auto text = search_prompt(tried, {}, limits);
  EXPECT_THAT(text, HasSubstr("- g3.e0, new"));
  EXPECT_THAT(text, HasSubstr("- g19.e0, new"));
  EXPECT_THAT(text, Not(HasSubstr("- g10.e0, new")));
}

} // namespace kernelmill::search_prompt_test

#include <gtest/gtest.h>

#include "actors/episode/transition.hpp"

using namespace kernelmill;

namespace transition_test {

TEST(transition, of_the_first_program_is_synthesized_whatever_was_said_before) {
  EXPECT_STREQ(transition_of({}, "a", true), "synthesized");
  EXPECT_STREQ(transition_of({{"", false}}, "a", true), "synthesized");
}

TEST(transition, of_the_same_bytes_is_no_rewrite) {
  EXPECT_STREQ(transition_of({{"a", true}}, "a", true), "repeated");
  EXPECT_STREQ(transition_of({{"a", true}, {"", false}}, "a", true), "repeated");
  EXPECT_STREQ(transition_of({{"a", true}, {"b", false}}, "a", true), "reverted");
}

TEST(transition, of_another_program_says_whether_it_repairs) {
  EXPECT_STREQ(transition_of({{"a", false}}, "b", true), "repaired");
  EXPECT_STREQ(transition_of({{"a", false}}, "b", false), "rewritten");
  EXPECT_STREQ(transition_of({{"a", true}}, "b", true), "rewritten");
}

TEST(transition, of_an_answer_without_a_program_is_none) {
  EXPECT_STREQ(transition_of({{"a", true}}, "", false), "none");
  EXPECT_STREQ(transition_of({}, "", false), "none");
}

} // namespace transition_test

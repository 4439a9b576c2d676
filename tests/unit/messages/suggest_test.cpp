#include "messages/base/suggest.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace kernelmill {

namespace suggest_test {

const std::vector<std::string> keys = {"policy", "policy.base_url", "tasks.group_size", "run.dir"};

TEST(suggest, one_wrong_letter_finds_the_key) {
  EXPECT_EQ(closest("policy.base_ulr", keys), "policy.base_url");
  EXPECT_EQ(closest("tasks.groupsize", keys), "tasks.group_size");
}

TEST(suggest, the_right_key_in_the_wrong_section_is_found_by_its_last_part) {
  EXPECT_EQ(closest("group_size", keys), "tasks.group_size");
  EXPECT_EQ(closest("server.base_url", keys), "policy.base_url");
}

TEST(suggest, nothing_is_suggested_for_a_word_that_is_far_from_all) {
  EXPECT_EQ(closest("zzzzzzzz", keys), "");
  EXPECT_EQ(closest("", keys), "");
  const std::vector<std::string> short_ones{"id", "hip", "on", "run"};
  EXPECT_EQ(closest("nix", short_ones), "");
  EXPECT_EQ(closest("rot", short_ones), "");
  EXPECT_EQ(closest("rum", short_ones), "run");
  EXPECT_EQ(closest(std::string(5000, 'x'), keys), "");
}

TEST(suggest, distance_counts_a_swap_as_one_and_ignores_case) {
  EXPECT_EQ(edit_distance("abc", "acb"), 1u);
  EXPECT_EQ(edit_distance("ABC", "abc"), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

} // namespace suggest_test

} // namespace kernelmill

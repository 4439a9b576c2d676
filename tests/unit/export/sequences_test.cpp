#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "material.hpp"
#include "storage/export/rows/sequences.hpp"

namespace kernelmill::exports {
namespace sequences_test {

using namespace row_fixtures;
using ::testing::ElementsAre;

TEST(sequences, go_on_as_long_as_each_prompt_does) {
  auto x = sequences_of(make_group().episodes[0]);
  ASSERT_EQ(x.size(), 1u);
  EXPECT_THAT(x[0].ids, ElementsAre(1, 2, 3, 10, 11, 4, 20, 21));
  EXPECT_THAT(x[0].logprobs, ElementsAre(0, 0, 0, -0.1f, -2.5f, 0, -0.1f, -2.5f));
  EXPECT_EQ(x[0].prompt_length, 3u);
  EXPECT_EQ(x[0].turns[1].turn, 1u);
}

TEST(sequences, begin_anew_where_the_prompt_departs) {
  auto x = sequences_of(make_group().episodes[1]);
  ASSERT_EQ(x.size(), 2u);
  EXPECT_THAT(x[1].ids, ElementsAre(1, 2, 9, 20, 21));
  EXPECT_EQ(x[1].versions[0].start, 3u);
}

TEST(sequences, keep_a_turn_without_a_return_as_context) {
  auto e = make_group().episodes[0];
  e.turns[0].back = std::nullopt;
  e.turns[0].logprobs.clear();
  auto x = sequences_of(e);
  EXPECT_THAT(x.at(0).mask, ElementsAre(0, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_TRUE(x.at(0).has_logprobs) << "of what is trained on, all are known";
}

TEST(sequences, know_when_a_log_probability_was_not_told) {
  auto e = make_group().episodes[0];
  e.turns[0].logprobs[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(sequences_of(e).at(0).has_logprobs);
}

TEST(sequences, are_none_where_the_server_told_no_ids) {
  auto e = make_group().episodes[0];
  for (auto& t : e.turns) t.prompt_ids.clear();
  EXPECT_TRUE(sequences_of(e).empty());
  EXPECT_FALSE(has_all_tokens(e));
}

TEST(sequences, read_the_number_of_a_version) {
  EXPECT_EQ(version_number("step-12"), 12);
  EXPECT_EQ(version_number("7"), 7);
  EXPECT_EQ(version_number("main"), 0);
  EXPECT_EQ(version_number(""), 0);
}

} // namespace sequences_test
} // namespace kernelmill::exports

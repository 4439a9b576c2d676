#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/analysis/watch/filter.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {
namespace watch_filter_test {

using testing::HasSubstr;

const std::vector<std::string> keys{"state", "age_seconds", "id", "best_reward", "last_error"};

bool matches(const std::string& condition, const json& row) {
  auto wanted = parse_filter(condition, keys);
  EXPECT_TRUE(wanted) << condition << ": " << (wanted ? "" : wanted.error().message);
  return wanted && (*wanted)(row);
}

TEST(filter, compares_texts_and_numbers_and_joins_them) {
  json row = {{"state", "queued"}, {"age_seconds", 61.5}, {"id", "g3.e1"}};
  EXPECT_TRUE(matches("", row));
  EXPECT_TRUE(matches("state=queued", row));
  EXPECT_TRUE(matches("state == \"queued\" and age>60", row));
  EXPECT_TRUE(matches("episode~g3", row)) << "a short name of a key";
  EXPECT_FALSE(matches("not state=queued or age_seconds<=61", row));
  EXPECT_TRUE(matches("not (state=thinking or age<1)", row));
  EXPECT_TRUE(matches("state=thinking or state=queued and age>=61.5", row)) << "and binds closer";
}

TEST(filter, a_row_without_the_key_matches_unequal_alone) {
  json row = {{"state", "queued"}, {"best_reward", nullptr}};
  EXPECT_FALSE(matches("age>0", row));
  EXPECT_FALSE(matches("reward=1", row));
  EXPECT_TRUE(matches("reward!=1", row));
  EXPECT_FALSE(matches("last_error~x", row));
}

TEST(filter, what_cannot_be_read_is_named_with_the_next_step) {
  for (const char* bad : {"state", "state=", "state=queued and", "(state=queued", "state>queued",
                          "state=queued x", "= 3", "not", "age > > 3"}) {
    auto wanted = parse_filter(bad, keys);
    ASSERT_FALSE(wanted) << bad;
    EXPECT_EQ(wanted.error().category, "usage");
    EXPECT_THAT(wanted.error().hint, HasSubstr("state")) << bad;
  }
  auto misspelt = parse_filter("stat=queued", keys);
  ASSERT_FALSE(misspelt);
  EXPECT_THAT(misspelt.error().hint, HasSubstr("did you mean 'state'?"));
  EXPECT_FALSE(parse_filter(std::string(100'000, '('), keys)) << "it must not take the stack";
}

TEST(filter, a_tilde_with_a_star_is_a_pattern_for_the_whole_text) {
  json row = {{"id", "kernelbench/level1/23_softmax"}};
  EXPECT_TRUE(matches("id~level1", row)) << "without a star it is looked for within";
  EXPECT_FALSE(matches("id ~ \"level1/*\"", row));
  EXPECT_TRUE(matches("id ~ \"*level1/*\"", row));
  EXPECT_TRUE(matches("id~kernelbench/level?/*softmax", row));
  EXPECT_FALSE(matches("id~*hardmax", row));
  json long_text = {{"id", std::string(20'000, 'a')}};
  EXPECT_FALSE(matches("id~" + std::string(200, '*') + "a*a*a*b", long_text)) << "and it ends";
}

TEST(condition, a_flag_stands_alone_and_the_keys_that_are_asked_for_are_told) {
  condition_keys with{{"task", "accepted", "reward"}, {"accepted"}, "see the page"};
  auto x = parse_condition("accepted and (not accepted = false or reward > 1)", with);
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_EQ(x->keys, (std::vector<std::string>{"accepted", "reward"}));
  EXPECT_TRUE(x->holds({{"accepted", true}}));
  EXPECT_FALSE(x->holds({{"accepted", false}, {"reward", 2}}));
  EXPECT_FALSE(parse_condition("reward", with)) << "a number is no flag";
  auto misspelt = parse_condition("acepted", with);
  ASSERT_FALSE(misspelt);
  EXPECT_THAT(misspelt.error().hint, HasSubstr("did you mean 'accepted'? see the page"));
}

TEST(sort_rows, counts_digits_as_numbers_and_puts_missing_ones_last) {
  std::vector<json> rows{{{"id", "g10.e0"}}, {{"id", "g2.e10"}}, {{"id", "g2.e9"}}, json::object()};
  ASSERT_TRUE(sort_rows(rows, "id", keys));
  EXPECT_EQ(rows[0]["id"], "g2.e9");
  EXPECT_EQ(rows[2]["id"], "g10.e0");
  EXPECT_FALSE(rows[3].contains("id"));
  ASSERT_TRUE(sort_rows(rows, "-episode", keys));
  EXPECT_EQ(rows[0]["id"], "g10.e0");
  EXPECT_FALSE(rows[3].contains("id"));
  EXPECT_FALSE(sort_rows(rows, "colour", keys));
}

} // namespace watch_filter_test
} // namespace kernelmill::watch

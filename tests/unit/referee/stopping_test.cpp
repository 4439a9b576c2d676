#include "gpu/referee/stopping.hpp"

#include <gtest/gtest.h>

#include "gpu/referee/paid_kinds.hpp"
#include "made_blocks.hpp"

using namespace kernelmill;

namespace stopping_test {

TEST(stop_reason, stops_for_each_of_its_reasons) {
  stopping_rule rule;
  std::vector<timed_block> clear(5, block(2, 1));
  EXPECT_EQ(stop_reason(clear, rule, 0.01), "the interval is narrow enough");
  EXPECT_EQ(stop_reason({clear.begin(), clear.begin() + 3}, rule, 0.01), "");
  EXPECT_EQ(stop_reason({clear.begin(), clear.begin() + 3}, rule, 2.0), "the time budget is spent");
  EXPECT_EQ(stop_reason(noisy(30, 5, 0.9), rule, 0.01), "the most blocks");
  EXPECT_EQ(stop_reason(noisy(8, 5, 0.9), rule, 0.01), "");
}

TEST(stop_reason, gives_up_where_that_saves_time) {
  stopping_rule rule; // 1.5 s
  std::vector<timed_block> slow(3, block(1, 3));
  EXPECT_EQ(stop_reason(slow, rule, 0.8), "slower than half the reference in every block");
  EXPECT_EQ(stop_reason({slow.begin(), slow.begin() + 2}, rule, 0.8), "");
  EXPECT_EQ(stop_reason(slow, rule, 0.2), "") << "a disturbance may be over in a moment";
  for (int i = 0; i < 6; ++i) slow.push_back(block(1, 1));
  EXPECT_EQ(stop_reason(slow, rule, 0.8), "") << "and it was";
  EXPECT_EQ(stop_reason(std::vector<timed_block>(30, block(1, 3)), rule, 9), hopeless)
      << "nothing more is paid, whatever else would end it";
}

TEST(stop_reason, waits_for_all_kinds) {
  stopping_rule rule{.all_met = false};
  std::vector<timed_block> clear(8, block(2, 1));
  EXPECT_EQ(stop_reason(clear, rule, 9), "");
  EXPECT_EQ(stop_reason_by_kind({{"own", clear}}, rule, 9), "");
  EXPECT_EQ(stop_reason(std::vector<timed_block>(8, block(1, 300)), rule, 9), "")
      << "who is slow is checked on the others, too";
  rule.max_blocks = 8;
  EXPECT_EQ(stop_reason(clear, rule, 9), "");
  EXPECT_EQ(stop_reason_by_kind({{"own", clear}}, rule, 9), "");
  rule.all_met = true;
  EXPECT_EQ(stop_reason(clear, rule, 0), "the most blocks");
}

TEST(stop_reason_by_kind, looks_at_what_would_be_paid) {
  auto kinds = kinds_of({{8, 2}, {2, 2}, {2, 2}, {2, 2}}, 0.01);
  for (size_t kind : {2, 3}) // on which the baseline takes longer
    for (auto& x : kinds[kind].blocks)
      for (auto& seconds : x.reference) seconds *= 2;
  std::vector<timed_block> all;
  for (const auto& x : kinds) all.insert(all.end(), x.blocks.begin(), x.blocks.end());
  stopping_rule rule;
  EXPECT_EQ(stop_reason(all, rule, 0.01), "");
  EXPECT_EQ(stop_reason_by_kind(kinds, rule, 0.01), "the interval is narrow enough");
  EXPECT_EQ(stop_reason_by_kind(kinds, rule, 9), "the time budget is spent");
}

TEST(stop_reason_by_kind, goes_on_while_a_kind_is_in_doubt) {
  auto kinds = kinds_of({{8, 2}, {1, 1.5}}, 0.01);
  ASSERT_TRUE(pay_slowest(kinds).in_doubt);
  EXPECT_EQ(stop_reason_by_kind(kinds, {.half_width = 0.01}, 0.01), "");
}

} // namespace stopping_test

#include <gtest/gtest.h>

#include "actors/policy_client/protocol/token_thread.hpp"

namespace kernelmill {
namespace token_thread_test {

using ids = std::vector<int32_t>;
using wire::TokenState;

constexpr int32_t end_mark = 99;

void expect(const token_audit& x, TokenState state, uint32_t position, uint32_t kept) {
  EXPECT_EQ(x.state, state);
  EXPECT_EQ(x.position, position);
  EXPECT_EQ(x.kept, kept);
}

TEST(audit_tokens, a_first_turn_with_ids_is_exact) {
  expect(audit_tokens(true, {}, ids{1, 2}, ids{3}), TokenState::EXACT, 0, 0);
}

TEST(audit_tokens, a_prompt_that_goes_on_is_exact) {
  expect(audit_tokens(false, ids{1, 2, 3}, ids{1, 2, 3, 4}, ids{5}), TokenState::EXACT, 3, 3);
}

TEST(audit_tokens, a_prompt_that_departs_is_a_branch_and_says_where) {
  expect(audit_tokens(false, ids{1, 2, 3}, ids{1, 2, 7, 4}, ids{5}), TokenState::BRANCH, 2, 3);
  expect(audit_tokens(false, ids{1, 2, 3}, ids{1, 2}, ids{5}), TokenState::BRANCH, 2, 3);
}

TEST(audit_tokens, a_later_turn_of_which_nothing_was_kept_is_a_branch_at_the_beginning) {
  expect(audit_tokens(false, {}, ids{1, 2}, ids{5}), TokenState::BRANCH, 0, 0);
}

TEST(audit_tokens, missing_ids_are_inexact) {
  expect(audit_tokens(true, {}, {}, ids{5}), TokenState::INEXACT, 0, 0);
  expect(audit_tokens(false, ids{1}, ids{1, 2}, {}), TokenState::INEXACT, 0, 1);
}

TEST(keep_thread, joins_prompt_and_completion_or_keeps_nothing) {
  auto x = keep_thread(ids{1, 2}, ids{3, 4, 5});
  EXPECT_EQ(x.ids, (ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(x.sampled, 3u);
  EXPECT_TRUE(keep_thread(ids{1, 2}, {}).ids.empty());
  EXPECT_TRUE(keep_thread({}, ids{1}).ids.empty());
}

TEST(extend_thread, does_not_double_the_mark_that_the_model_sampled) {
  auto thread = keep_thread(ids{1, 2}, ids{3, end_mark});
  EXPECT_EQ(extend_thread(thread, ids{end_mark, 10, 20}), (ids{1, 2, 3, end_mark, 10, 20}));
}

TEST(extend_thread, closes_an_answer_that_was_cut_off) {
  auto thread = keep_thread(ids{1, 2}, ids{3, 4});
  EXPECT_EQ(extend_thread(thread, ids{end_mark, 10, 20}), (ids{1, 2, 3, 4, end_mark, 10, 20}));
}

TEST(extend_thread, takes_nothing_of_the_prompt_for_an_end) {
  auto thread = keep_thread(ids{1, end_mark}, ids{10});
  EXPECT_EQ(extend_thread(thread, ids{end_mark, 10, 20}), (ids{1, end_mark, 10, end_mark, 10, 20}));
}

TEST(extend_thread, needs_a_thread_and_a_tail) {
  EXPECT_FALSE(extend_thread({}, ids{1}));
  EXPECT_FALSE(extend_thread(keep_thread(ids{1}, ids{2}), {}));
}

TEST(common_suffix, is_what_two_renderings_end_with) {
  auto tail = [](const ids& a, const ids& b) {
    auto x = common_suffix(a, b);
    return ids{x.begin(), x.end()};
  };
  EXPECT_EQ(tail({1, 5, 8, 9}, {1, 6, 7, 8, 9}), (ids{8, 9}));
  EXPECT_TRUE(tail({1, 2}, {1, 3}).empty());
  EXPECT_EQ(tail({1, 2}, {1, 2}), (ids{1, 2}));
}

} // namespace token_thread_test
} // namespace kernelmill

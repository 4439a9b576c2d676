// When the contract `torch` has blocks enough to pay a speedup.

#include "gpu/torch/torch_blocks.hpp"
#include "messages/base/json_value.hpp"

#include <gtest/gtest.h>

#include "gpu/referee/paid_kinds.hpp"

namespace kernelmill {

namespace torch_blocks_test {

nlohmann::json answer(const char* kind, double candidate, int kinds = 12) {
  return {{"fixed", 0.0},
          {"apart", 0.0},
          {"beside", 0.0},
          {"cost", 0.0},
          {"seen", {{"alone_candidate", candidate}}},
          {"kind", kind},
          {"calls", 2},
          {"unmet", 0},
          {"kinds", kinds},
          {"reference", {1.0, 1.0}},
          {"candidate", {candidate, candidate}}};
}

torch_blocks blocks_of(size_t own, const std::vector<std::pair<const char*, double>>& others,
                       double seconds = 0.25) {
  torch_blocks result;
  for (size_t i = 0; i < own; ++i) result.take(answer("own", seconds));
  for (const auto& [kind, taken] : others) result.take(answer(kind, taken));
  return result;
}

// Of eight blocks one shows that the candidate is no faster where its shortcut fails.
const std::vector<std::pair<const char*, double>> others{
    {"held", 0.25}, {"few_signs", 1.0}, {"steep", 0.25}, {"large", 0.25}};

TEST(torch_blocks, a_slow_kind_is_called_so_once_noise_is_known) {
  auto few = blocks_of(4, others);
  EXPECT_FALSE(few.wants_more_kinds());
  auto paid = pay_slowest(few.without_fixed());
  EXPECT_FALSE(paid.in_doubt);
  EXPECT_GT(paid.speedup.low, 1.9); // which is not to be paid
  EXPECT_TRUE(few.is_undecided());

  auto enough = blocks_of(5, others);
  EXPECT_FALSE(enough.is_undecided());
  EXPECT_EQ(pay_slowest(enough.without_fixed()).in_doubt, "few_signs");
}

TEST(torch_blocks, a_kind_that_noise_may_make_slow_is_timed_until_it_is_told) {
  // A machine that makes the same call now a little longer, now shorter; a shortcut that saves a
  // third.
  torch_blocks noisy;
  double pace = 1.04;
  auto take = [&](const char* kind, double seconds) {
    auto x = answer(kind, seconds * pace);
    pace = 1 / pace;
    x["reference"] = {pace, pace};
    noisy.take(x);
  };
  for (int i = 0; i < 6; ++i) take("own", 0.67);
  for (const char* kind : {"steep", "large", "held"}) take(kind, 0.67);
  take("few_signs", 1.05);
  EXPECT_FALSE(pay_slowest(noisy.without_fixed()).in_doubt);
  size_t taken = 1;
  for (; noisy.wanted() == "few_signs"; ++taken) take("few_signs", 1.05);
  EXPECT_GT(taken, confirming_blocks); // four do not tell
  EXPECT_LE(taken, 12);
  EXPECT_EQ(noisy.wanted(), "");
  EXPECT_EQ(pay_slowest(noisy.without_fixed()).slowest, "few_signs");
  EXPECT_EQ(blocks_of(6, others).wanted(), "few_signs"); // which is plainly slow
  EXPECT_EQ(blocks_of(9, {}).wanted(), "");
}

TEST(torch_blocks,
     nothing_more_is_needed_of_a_candidate_that_is_slow_and_of_problems_with_one_kind) {
  EXPECT_FALSE(blocks_of(2, {{"held", 3.0}, {"steep", 3.0}}, 3.0).is_undecided());
  torch_blocks alone;
  alone.take(answer("own", 0.25, 1));
  EXPECT_FALSE(alone.is_undecided());
  EXPECT_EQ(alone.seen().at("alone_candidate"), 0.25);
}

TEST(torch_blocks, what_is_no_calls_is_taken_from_each_side) {
  torch_blocks blocks;
  auto x = answer("own", 0.5);
  x["fixed"] = 0.1;
  blocks.take(x);
  auto found = blocks.without_fixed().front().blocks.front();
  EXPECT_DOUBLE_EQ(found.reference[0], 0.9);
  EXPECT_DOUBLE_EQ(found.candidate[1], 0.4);
  x["fixed"] = 0.5;
  blocks.take(x);
  EXPECT_DOUBLE_EQ(blocks.without_fixed().front().blocks.front().candidate[0], 0.05);
}

TEST(torch_blocks, kinds_that_were_not_looked_at_yet_leave_it_undecided) {
  auto x = blocks_of(9, {others[0], others[2], others[3]});
  EXPECT_TRUE(x.is_undecided());
  x.take(answer("large", 0.25));
  EXPECT_FALSE(x.is_undecided());
}

} // namespace torch_blocks_test

} // namespace kernelmill

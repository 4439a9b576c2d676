#include "actors/governance/bias.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelmill {
namespace bias_test {

using testing::HasSubstr;
using testing::IsEmpty;

/// A run of turns whose losses `is_lost` chooses by task, language, length and a draw in [0, 1).
template <class F>
loss_ledger played(unsigned turns, F is_lost) {
  loss_ledger result;
  std::mt19937_64 random{7};
  std::uniform_real_distribution<double> draw{0, 1};
  for (unsigned i = 0; i < turns; ++i) {
    auto task = "native/t" + std::to_string(i % 10);
    auto language = draw(random) < 0.5 ? "cpp" : "cuda";
    auto length = static_cast<uint64_t>(std::exp2(8 + 7 * draw(random)));
    result.note(task, language, length, is_lost(task, language, length, draw(random)));
  }
  return result;
}

TEST(bias, losses_that_fall_on_all_turns_alike_raise_no_alarm) {
  auto alike = [](auto&&, auto&&, uint64_t, double x) { return x < 0.05; };
  EXPECT_THAT(played(4000, alike).alarms(), IsEmpty());
  auto all = [](auto&&, auto&&, uint64_t, double) { return true; };
  EXPECT_THAT(played(100, all).alarms(), IsEmpty());
  EXPECT_THAT(loss_ledger{}.alarms(), IsEmpty());
}

TEST(bias, losses_of_one_task_raise_an_alarm_that_names_it) {
  auto x = played(1000, [](const std::string& task, auto&&, uint64_t, double chance) {
    return chance < (task == "native/t3" ? 0.4 : 0.02);
  });
  auto suspects = x.suspects();
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].factor, "task");
  EXPECT_EQ(suspects[0].level, "native/t3");
  EXPECT_EQ(suspects[0].here.turns, 100u);
  EXPECT_EQ(suspects[0].all.turns, 1000u);
  EXPECT_THAT(x.alarms()[0], HasSubstr("the task (native/t3)"));
}

TEST(bias, losses_of_one_language_or_of_long_answers_raise_an_alarm) {
  auto language = played(1000, [](auto&&, const std::string& name, uint64_t, double chance) {
    return chance < (name == "cuda" ? 0.15 : 0.01);
  });
  ASSERT_FALSE(language.suspects().empty());
  EXPECT_EQ(language.suspects()[0].level, "cuda");
  auto length = played(1000, [](auto&&, auto&&, uint64_t bytes, double chance) {
    return chance < (bytes >= 8192 ? 0.3 : 0.01);
  });
  ASSERT_FALSE(length.suspects().empty());
  EXPECT_EQ(length.suspects()[0].factor, "length");
  EXPECT_THAT(length.suspects()[0].level, testing::AnyOf("8 to 16 KiB", "16 to 32 KiB"));
}

TEST(bias, turns_that_were_lost_before_an_answer_count_for_their_task_alone) {
  loss_ledger x;
  for (int i = 0; i < 200; ++i) x.note(i % 2 ? "a" : "b", "cpp", 2000, false);
  for (int i = 0; i < 12; ++i) x.note_unanswered("b");
  ASSERT_EQ(x.suspects().size(), 1u);
  EXPECT_EQ(x.suspects()[0].factor, "task");
  EXPECT_EQ(x.suspects()[0].level, "b");
  EXPECT_EQ(x.suspects()[0].here.lost, 12u);
  EXPECT_EQ(x.suspects()[0].here.turns, 112u);
}

TEST(bias, too_few_losses_say_nothing) {
  loss_ledger x;
  for (unsigned i = 0; i < 1000; ++i) x.note("a", "cpp", 100, false);
  for (unsigned i = 0; i + 1 < loss_ledger::least_lost; ++i) x.note("b", "cpp", 100, true);
  EXPECT_THAT(x.suspects(), IsEmpty());
  x.note("b", "cpp", 100, true);
  ASSERT_EQ(x.suspects().size(), 1u);
  EXPECT_EQ(x.suspects()[0].level, "b");
}

// Of ten cards, three red, five are drawn: two or more red in 6 of 12 cases.
TEST(bias, the_chance_is_that_of_a_draw_without_replacement) {
  EXPECT_NEAR(chance_of_losses({2, 5}, {3, 10}), 0.5, 1e-12);
  EXPECT_NEAR(chance_of_losses({3, 5}, {3, 10}), 1.0 / 12, 1e-12);
  EXPECT_NEAR(chance_of_losses({0, 5}, {3, 10}), 1, 1e-12);
  EXPECT_NEAR(chance_of_losses({8, 9}, {8, 10}), 9.0 / 45, 1e-12);
}

TEST(bias, twenty_runs_without_a_cause_raise_no_alarm) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random{seed};
    loss_ledger x;
    for (unsigned i = 0; i < 2000; ++i)
      x.note("t" + std::to_string(random() % 50), random() % 3 == 0 ? "cpp" : "cuda",
             random() % 40'000, random() % 20 == 0);
    EXPECT_THAT(x.alarms(), IsEmpty()) << seed;
  }
}

} // namespace bias_test
} // namespace kernelmill

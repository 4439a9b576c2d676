// Which kind of contents is paid alone: of honest candidates none, however noisy, and of those that
// are slow on one kind that one, whatever noise they make.

#include <cmath>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "gpu/referee/doubts.hpp"
#include "gpu/referee/paid_kinds.hpp"
#include "tests/unit/referee/made_blocks.hpp"

using namespace kernelmill;

namespace doubts_test {

constexpr size_t kind_count = 12;
constexpr size_t the_slow_one = 5;

// A candidate, a baseline that varies by 5 %, and the blocks that the referee had by then.
class simulated {
public:
  // `seconds` of a call of the candidate on a kind; the baseline's take 1.
  simulated(unsigned seed, size_t budget, std::function<double(size_t, std::mt19937&)> seconds)
      : dice_(seed), budget_(budget), seconds_(std::move(seconds)) {
    for (size_t kind = 0; kind < kind_count; ++kind) {
      blocks.push_back({"k" + std::to_string(kind), {}});
      for (size_t i = 0; i < (kind == 0 ? 8u : 2u); ++i) blocks[kind].blocks.push_back(draw(kind));
    }
  }

  std::optional<slow_kind> settle() {
    return settle_doubts(blocks, [this](size_t kind) {
      if (taken == budget_) return false;
      ++taken;
      blocks[kind].blocks.push_back(draw(kind));
      return true;
    });
  }

  std::vector<kind_blocks> blocks;
  size_t taken = 0;

private:
  timed_block draw(size_t kind) {
    std::normal_distribution<double> noise{1, 0.05};
    timed_block x{};
    for (int i = 0; i < 2; ++i) {
      x.reference[i] = noise(dice_);
      x.candidate[i] = seconds_(kind, dice_) * noise(dice_);
    }
    return x;
  }

  std::mt19937 dice_;
  size_t budget_;
  std::function<double(size_t, std::mt19937&)> seconds_;
};

struct rates {
  double doubted = 0; // some kind, from one and a half standard errors on
  double seen = 0;    // some kind, from four on
  double slow = 0;    // in the end
  double right = 0;   // of all: the one that is slow
  double taken = 0;   // blocks
};

rates rates_of(std::function<double(size_t, std::mt19937&)> seconds, size_t budget = 400) {
  constexpr unsigned tries = 400;
  rates result;
  for (unsigned seed = 1; seed <= tries; ++seed) {
    simulated x{seed, budget, seconds};
    auto paid = pay_slowest(x.blocks);
    result.seen += paid.slowest || paid.in_doubt;
    result.doubted += doubtful_kind(x.blocks).has_value();
    auto slow = x.settle();
    result.slow += slow.has_value();
    result.right += slow && slow->kind == the_slow_one;
    result.taken += static_cast<double>(x.taken);
  }
  for (auto* x : {&result.doubted, &result.seen, &result.slow, &result.right, &result.taken})
    *x /= tries;
  return result;
}

double honest(size_t, std::mt19937&) {
  return 0.5;
}

// Now fast, now twice as long, and always so on one kind.
double jittering(size_t kind, std::mt19937& dice) {
  return kind == the_slow_one || dice() % 3 == 0 ? 1 : 0.5;
}

TEST(settle_doubts, noise_of_an_honest_candidate_is_often_a_doubt_and_next_to_never_a_verdict) {
  auto found = rates_of(honest);
  EXPECT_GT(found.doubted, 2 * found.seen);
  EXPECT_LT(found.slow, 0.02);
}

TEST(settle_doubts, a_candidate_that_varies_by_itself_is_not_called_slow_for_that) {
  auto found = rates_of([](size_t, std::mt19937& dice) { return dice() % 3 == 0 ? 0.6 : 0.5; });
  EXPECT_LT(found.slow, 0.06);
}

TEST(settle_doubts, jitter_hides_no_slow_kind) {
  auto found = rates_of(jittering);
  EXPECT_LT(found.seen, 0.9); // four standard errors of two blocks are a factor of two
  EXPECT_GT(found.right, 0.98);
}

TEST(settle_doubts, a_kind_that_looks_slow_by_jitter_is_no_decoy) {
  // Two kinds are slower than the task's own, one of them by far, which comes second.
  simulated x{11, 2000, [](size_t kind, std::mt19937&) {
                return kind == the_slow_one ? 1. : kind == 3 ? 0.7 : 0.5;
              }};
  x.blocks[3].blocks[0].candidate[0] = x.blocks[3].blocks[1].candidate[0] = 9;
  auto slow = x.settle();
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->kind, the_slow_one);
}

TEST(settle_doubts, without_time_only_what_is_plain_is_believed) {
  EXPECT_LT(rates_of(honest, 3).slow, 0.02);
  auto plain = [](size_t kind, std::mt19937&) { return kind == the_slow_one ? 1.5 : 0.5; };
  EXPECT_GT(rates_of(plain, 3).right, 0.95);
}

// A shortcut that saves a quarter and fails on one kind, on a machine whose calls differ by 10 %:
// how many of a hundred verdicts pay it.
int paid_shortcuts(double on_the_slow_one) {
  int result = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 dice{seed};
    std::normal_distribution<double> noise{0, 0.1};
    std::vector<kind_blocks> kinds;
    auto take = [&](size_t kind) {
      timed_block x{};
      for (int i = 0; i < 2; ++i) {
        x.reference[i] = std::exp(noise(dice));
        x.candidate[i] = std::exp(noise(dice)) * (kind == the_slow_one ? on_the_slow_one : 0.75);
      }
      kinds[kind].blocks.push_back(x);
    };
    for (size_t kind = 0; kind < kind_count; ++kind) {
      kinds.push_back({"k" + std::to_string(kind), {}});
      for (size_t i = 0; i < (kind == 0 ? 12u : 1u); ++i) take(kind);
    }
    while (auto name = unsettled_kind(kinds)) take(std::stoul(name->substr(1)));
    result += pay_settled(kinds).speedup.low > 1.02;
  }
  return result;
}

TEST(unsettled_kind, is_timed_until_a_noisy_machine_hides_no_shortcut_of_it) {
  EXPECT_LT(paid_shortcuts(1), 25);    // with four blocks of it, 36
  EXPECT_GT(paid_shortcuts(0.75), 97); // of honest candidates nothing is lost
}

TEST(pay_after_doubts, a_shortcut_gains_little_where_there_is_no_time_to_settle_it) {
  auto paid = [](double on_the_slow_one, size_t budget) {
    int result = 0;
    for (unsigned seed = 1; seed <= 100; ++seed) {
      simulated x{seed, budget, [&](size_t kind, std::mt19937& dice) {
                    std::normal_distribution<double> noise{1, 0.08};
                    return (kind == the_slow_one ? on_the_slow_one : 0.77) * noise(dice);
                  }};
      auto slow = x.settle();
      result += pay_after_doubts(x.blocks, slow).speedup.low > 1.02;
    }
    return result;
  };
  EXPECT_LT(paid(1, 8), 25);
  EXPECT_GT(paid(0.77, 8), 97);
}

TEST(pay_settled, pays_no_more_than_what_time_left_unsettled) {
  std::vector<kind_blocks> kinds{{"k0", {}}, {"k1", {}}};
  for (size_t i = 0; i < 8; ++i)
    kinds[0].blocks.push_back({{1 + 0.1 * (i % 2), 1}, {0.7, 0.7 + 0.07 * (i % 3)}});
  kinds[1].blocks.push_back({{1, 1}, {0.85, 0.85}});
  ASSERT_FALSE(pay_slowest(kinds).in_doubt);
  ASSERT_EQ(unsettled_kind(kinds), "k1");
  EXPECT_GT(pay_slowest(kinds).speedup.low, 1.2);
  EXPECT_NEAR(pay_settled(kinds).speedup.low, 1 / 0.85, 1e-9);
  for (auto& kind : kinds)
    for (auto& x : kind.blocks)
      for (auto& seconds : x.candidate) seconds *= 4;
  EXPECT_FALSE(unsettled_kind(kinds)); // far slower in any case
}

// Sixteen blocks that differ by 10 % tell no 12 %: no more of them come, and that is no reason to
// pay for the other kinds.
TEST(pay_settled, pays_no_more_than_a_kind_shows_that_stays_in_doubt) {
  std::vector<kind_blocks> kinds{{"k0", {}}, {"k1", {}}, {"k2", {}}};
  for (auto& kind : kinds)
    for (int i = 0; i < 16; ++i)
      kind.blocks.push_back(block(i % 2 == 0 ? 1.05 : 1 / 1.05, kind.name == "k1" ? 0.84 : 0.75));
  ASSERT_EQ(doubtful_kind(kinds), "k1");
  ASSERT_FALSE(pay_slowest(kinds).slowest);
  ASSERT_FALSE(unsettled_kind(kinds));
  EXPECT_GT(pay_slowest(kinds).speedup.low, 1.22);
  EXPECT_NEAR(pay_settled(kinds).speedup.low, 1 / 0.84, 0.01);
}

// Otherwise a candidate that is plainly a little slow on one kind could choose that pay, and hide a
// shortcut that fails on another.
TEST(pay_after_doubts, a_kind_that_is_slow_settles_no_doubt_about_another) {
  std::vector<kind_blocks> kinds{{"k0", {}}, {"k1", {}}, {"k2", {}}};
  for (size_t i = 0; i < 8; ++i)
    kinds[0].blocks.push_back({{1 + 0.1 * (i % 2), 1}, {0.7, 0.7 + 0.07 * (i % 3)}});
  kinds[1].blocks.push_back({{1, 1}, {0.9, 0.9}});
  for (int i = 0; i < 4; ++i) kinds[2].blocks.push_back({{1, 1}, {0.8, 0.8}});
  ASSERT_EQ(unsettled_kind(kinds), "k1");
  auto paid = pay_after_doubts(kinds, slow_kind{2, 1.1});
  EXPECT_NEAR(paid.candidate_seconds, 0.8, 1e-9);
  EXPECT_NEAR(paid.speedup.low, 1 / 0.9, 1e-9);
}

TEST(needs_noise, unless_it_is_known_or_the_candidate_is_far_slower) {
  simulated x{5, 0, honest};
  EXPECT_FALSE(needs_noise(x.blocks));
  for (auto& kind : x.blocks) kind.blocks.resize(kind.name == "k0" ? 3 : 1);
  EXPECT_TRUE(needs_noise(x.blocks));
  for (auto& kind : x.blocks)
    for (auto& block : kind.blocks)
      for (auto& seconds : block.candidate) seconds *= 10;
  EXPECT_FALSE(needs_noise(x.blocks));
}

TEST(settle_doubts, a_kind_that_is_slow_is_paid_by_blocks_of_its_own) {
  simulated x{7, 400, [](size_t kind, std::mt19937&) { return kind == the_slow_one ? 1. : 0.5; }};
  auto slow = x.settle();
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->kind, the_slow_one);
  EXPECT_NEAR(slow->times_slower, 2, 0.2);
  EXPECT_GE(x.blocks[the_slow_one].blocks.size(), confirming_blocks);
}

// All kinds were met at one clock, and are timed again at another that is a third slower: the
// baseline takes less on one of them, the candidate the same.
TEST(settle_doubts, a_clock_that_changes_before_the_second_timing_makes_no_kind_slow) {
  std::mt19937 dice{7};
  std::normal_distribution<double> noise{1, 0.01};
  size_t place = 0;
  auto draw = [&](size_t kind, double pace) {
    timed_block x{};
    x.place = place++;
    for (int i = 0; i < 2; ++i) {
      x.reference[i] = (kind == the_slow_one ? 0.098 : 0.124) * pace * noise(dice);
      x.candidate[i] = 0.08 * pace * noise(dice);
    }
    return x;
  };
  std::vector<kind_blocks> blocks;
  for (size_t kind = 0; kind < kind_count; ++kind)
    blocks.push_back({"k" + std::to_string(kind), {}});
  // The kind is met at the slower clock, most of the task's own blocks at the faster.
  for (int i = 0; i < 4; ++i) blocks[0].blocks.push_back(draw(0, 1));
  for (size_t kind = 1; kind < kind_count; ++kind) {
    double pace = kind == the_slow_one ? 1.33 : 1;
    blocks[kind].blocks.push_back(draw(kind, pace));
    blocks[0].blocks.push_back(draw(0, pace));
  }
  size_t taken = 0;
  auto slow = settle_doubts(blocks, [&](size_t kind) {
    blocks[kind].blocks.push_back(draw(kind, 1.33));
    return ++taken < 200;
  });
  EXPECT_FALSE(slow) << blocks[slow->kind].name;
  EXPECT_NEAR(pay_slowest(blocks).speedup.estimate, 1.55, 0.02);
}

} // namespace doubts_test

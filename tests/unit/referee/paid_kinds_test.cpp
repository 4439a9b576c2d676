#include "gpu/referee/paid_kinds.hpp"

#include <gtest/gtest.h>

#include "gpu/referee/doubts.hpp"
#include "made_blocks.hpp"

using namespace kernelmill;

namespace paid_kinds_test {

TEST(pay_slowest, pays_all_blocks_where_kinds_are_alike) {
  auto paid = pay_slowest(kinds_of({{6, 1.5}, {2, 1.5}, {2, 1.5}, {2, 1.52}, {0, 1}}, 0.02));
  EXPECT_FALSE(paid.slowest);
  EXPECT_FALSE(paid.in_doubt);
  EXPECT_NEAR(paid.speedup.estimate, 1.5, 0.03);
  EXPECT_NEAR(paid.reference_seconds / paid.candidate_seconds, 1.5, 0.03);
}

TEST(pay_slowest, tells_the_times_of_the_tasks_own_contents) {
  auto kinds = kinds_of({{4, 1.5}, {3, 1.5}, {3, 1.5}}, 0.01);
  double before = pay_slowest({kinds[0]}).reference_seconds;
  for (size_t i : {1, 2}) // which need less power
    for (auto& x : kinds[i].blocks)
      for (auto* side : {x.reference, x.candidate})
        for (int k : {0, 1}) side[k] *= 0.8;
  auto paid = pay_slowest(kinds);
  EXPECT_FALSE(paid.slowest);
  EXPECT_NEAR(paid.speedup.estimate, 1.5, 0.03);
  EXPECT_DOUBLE_EQ(paid.reference_seconds, before);
}

TEST(pay_slowest, pays_the_slowest_kind_where_others_are_faster) {
  auto paid = pay_slowest(kinds_of({{6, 7}, {2, 7}, {4, 1}, {2, 7}}, 0.02));
  EXPECT_EQ(paid.slowest, "k2");
  EXPECT_NEAR(paid.speedup.estimate, 1, 0.03);
  EXPECT_NEAR(paid.times_slower, 7, 0.3);
  EXPECT_LT(paid.speedup.high, 1.1);
}

TEST(pay_slowest, pays_no_more_than_a_kind_shows_until_it_was_seen_often_enough) {
  auto paid = pay_slowest(kinds_of({{6, 2}, {1, 2}, {1, 1.6}, {1, 2}}, 0.02));
  EXPECT_EQ(paid.in_doubt, "k2");
  EXPECT_FALSE(paid.slowest);
  EXPECT_NEAR(paid.speedup.estimate, 1.6, 0.05);
  EXPECT_LT(paid.speedup.low, 1.65);
}

TEST(pay_slowest, one_confirmed_kind_hides_no_other_that_is_in_doubt) {
  // All that are not the task's own are slow; of those that were seen less one seems the slowest.
  auto paid = pay_slowest(kinds_of({{15, 2}, {6, 1}, {6, 1}, {2, 0.97}, {2, 1}, {2, 1}}, 0.01));
  EXPECT_EQ(paid.in_doubt, "k3");
  EXPECT_NEAR(paid.speedup.estimate, 0.97, 0.01);
  EXPECT_LT(paid.speedup.low, 1.02);
}

// As a candidate may do that is now faster, now slower.
void alternate(std::vector<kind_blocks>& kinds, double factor) {
  for (auto& kind : kinds)
    for (size_t i = 0; i < kind.blocks.size(); i += 2)
      for (auto& seconds : kind.blocks[i].candidate) seconds *= factor;
}

TEST(pay_slowest, a_candidate_hides_nothing_behind_noise_of_its_own) {
  auto kinds = kinds_of({{15, 4}, {2, 4}, {3, 1}, {3, 4}, {3, 4}, {3, 4}}, 0.02);
  alternate(kinds, 1.8);
  auto paid = pay_slowest(kinds);
  EXPECT_EQ(paid.in_doubt, "k2");
  EXPECT_LT(paid.speedup.low, 1.02);
}

// What a call takes on the second kind hangs on the draw, for either side alike: by so much.
std::vector<kind_blocks> with_draws_that_differ(unsigned seed) {
  auto kinds = kinds_of({{12, 1}, {6, 1}, {4, 1}, {4, 1}}, 0.01, seed);
  auto draws = noisy(kinds[1].blocks.size(), seed + 100, 0.5);
  for (size_t i = 0; i < draws.size(); ++i)
    for (int k : {0, 1}) {
      kinds[1].blocks[i].reference[k] *= draws[i].reference[0] / 2; // whose speedup is 2
      kinds[1].blocks[i].candidate[k] *= draws[i].candidate[0];
    }
  return kinds;
}

TEST(pay_slowest, a_kind_whose_draws_differ_is_not_slow_by_one_that_was_long) {
  size_t blamed = 0;
  for (unsigned seed = 1; seed <= 200; ++seed)
    blamed += pay_slowest(with_draws_that_differ(seed)).slowest == "k1";
  EXPECT_LE(blamed, 2u); // 35 with the noise of all kinds together
  auto slow = with_draws_that_differ(1);
  for (auto& x : slow[1].blocks)
    for (auto& seconds : x.candidate) seconds *= 3;
  EXPECT_EQ(pay_slowest(slow).slowest, "k1");
}

// Draws of one kind differ by so much, for either side alike, and a candidate that is as slow as
// the baseline there adds noise of its own.
std::vector<kind_blocks> slow_where_draws_differ(size_t which, unsigned seed) {
  std::vector<std::pair<size_t, double>> shape(10, {4, 2});
  shape[0].first = 8;
  shape[which] = {8, 1};
  auto kinds = kinds_of(shape, 0.02, seed);
  auto& slow = kinds[which].blocks;
  auto draws = noisy(slow.size(), seed + 100, 1.5);
  for (size_t i = 0; i < slow.size(); ++i)
    for (int k : {0, 1}) {
      slow[i].reference[k] *= draws[i].reference[0] / 2;
      slow[i].candidate[k] *= draws[i].reference[0] / 2 * (i % 2 == 1 ? 3 : 1);
    }
  return kinds;
}

TEST(pay_slowest, a_candidate_hides_nothing_behind_the_noise_of_a_kind) {
  size_t paid_for_own = 0, paid_for_other = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    paid_for_own += pay_slowest(slow_where_draws_differ(0, seed)).speedup.low > 1.02;
    paid_for_other += pay_settled(slow_where_draws_differ(3, seed)).speedup.low > 1.02;
  }
  EXPECT_EQ(paid_for_own, 0u);
  EXPECT_EQ(paid_for_other, 0u);
}

TEST(pay_alike, is_no_more_than_what_other_contents_than_the_tasks_own_show) {
  auto kinds = kinds_of({{15, 1.04}, {3, 1}, {3, 1}, {3, 1}, {3, 1}, {3, 1}}, 0.005);
  auto paid = pay_slowest(kinds); // too little for a kind to be slower than others
  EXPECT_FALSE(paid.slowest || paid.in_doubt);
  EXPECT_GT(paid.speedup.estimate, 1.01);
  EXPECT_LT(paid.speedup.low, 1.005);
  kinds = kinds_of({{15, 2}, {3, 1}, {3, 1}, {3, 1}, {3, 1}, {3, 1}}, 0.5); // or much noise
  EXPECT_LT(pay_alike(kinds).speedup.low, 1.2);
}

TEST(pay_slowest, sees_that_the_tasks_own_kind_is_the_only_fast_one) {
  auto paid = pay_slowest(kinds_of({{6, 3}, {4, 1}, {2, 1.01}, {2, 1}, {2, 1}}, 0.01));
  ASSERT_TRUE(paid.slowest || paid.in_doubt);
  auto confirmed = pay_slowest(kinds_of({{6, 3}, {4, 1}, {4, 1}, {4, 1}, {4, 1}}, 0.01));
  ASSERT_TRUE(confirmed.slowest);
  EXPECT_NEAR(confirmed.speedup.estimate, 1, 0.03);
}

TEST(pay_slowest, pays_the_tasks_own_kind_where_it_is_the_slowest) {
  auto paid = pay_slowest(kinds_of({{6, 1}, {1, 2}, {1, 2}, {1, 2}}, 0.01));
  EXPECT_EQ(paid.slowest, "k0");
  EXPECT_NEAR(paid.speedup.estimate, 1, 0.02);
}

TEST(pay_slowest, a_baseline_that_is_faster_on_some_contents_is_no_shortcut_of_the_candidates) {
  auto kinds = kinds_of({{6, 5}, {2, 5}, {4, 5}, {4, 5}}, 0.02);
  for (size_t kind : {2, 3}) // zeros; numbers for which the baseline takes the long way
    for (auto& x : kinds[kind].blocks)
      for (auto& seconds : x.reference) seconds *= kind == 2 ? 0.18 : 3;
  auto paid = pay_slowest(kinds);
  EXPECT_FALSE(paid.slowest);
  EXPECT_FALSE(paid.in_doubt);
  EXPECT_NEAR(paid.speedup.estimate, 5, 0.2);
  EXPECT_GT(paid.speedup.low, 4.7);
}

TEST(pay_slowest, contents_on_which_the_candidate_is_faster_make_no_others_slow) {
  // A gelu: its baseline guesses branches wrongly where signs are mixed as the task mixes them, and
  // the candidate takes half the time where exponentials saturate.
  auto kinds = kinds_of({{8, 1.5}, {4, 0.76}, {4, 0.76}, {5, 2.4}, {4, 0.76}}, 0.01);
  for (size_t kind : {1, 2, 4})
    for (auto& x : kinds[kind].blocks) {
      for (auto& seconds : x.reference) seconds *= 0.5;
      for (auto& seconds : x.candidate) seconds *= 0.76 / 1.5; // as long as on the task's own
    }
  for (auto& x : kinds[3].blocks)
    for (auto& seconds : x.reference) seconds *= 0.85;
  for (auto& x : kinds[3].blocks)
    for (auto& seconds : x.candidate) seconds *= 0.85;
  auto paid = pay_slowest(kinds);
  EXPECT_FALSE(paid.slowest || paid.in_doubt);
  EXPECT_FALSE(doubtful_kind(kinds));
  EXPECT_NEAR(paid.speedup.estimate, 1.5, 0.03);
  EXPECT_GT(paid.speedup.low, 1.45);
}

// A machine whose clock falls by a third at some place among the blocks.
class two_paces {
public:
  explicit two_paces(size_t change) : change_(change) {}

  timed_block take(double reference, double candidate) {
    double pace = (place_ < change_ ? 1 : 1.33) * (place_ % 2 == 0 ? 1.004 : 0.996);
    auto result = block(reference * pace, candidate * pace);
    result.place = place_++;
    return result;
  }

private:
  size_t change_;
  size_t place_ = 0;
};

// gelu of 20,480 numbers: the baseline takes less near one, the candidate the same, half of a kind
// is timed before the clock changes and another after it.
std::vector<kind_blocks> two_kinds(size_t change, double candidate_near_one) {
  two_paces machine{change};
  std::vector<kind_blocks> result{{"normal", {}}, {"near_one", {}}, {"signs", {}}};
  for (int i = 0; i < 6; ++i) result[0].blocks.push_back(machine.take(0.124, 0.08));
  for (int i = 0; i < 6; ++i) result[2].blocks.push_back(machine.take(0.124, 0.08));
  result[0].blocks.push_back(machine.take(0.124, 0.08));
  for (int i = 0; i < 6; ++i) {
    result[1].blocks.push_back(machine.take(0.098, candidate_near_one));
    result[0].blocks.push_back(machine.take(0.124, 0.08));
  }
  return result;
}

TEST(pay_slowest, a_machine_whose_clock_changes_between_kinds_makes_none_slow) {
  for (size_t change : {0u, 9u, 13u, 14u, 40u}) {
    auto paid = pay_slowest(two_kinds(change, 0.08));
    EXPECT_FALSE(paid.slowest) << change;
    EXPECT_NEAR(paid.speedup.estimate, 1.55, 0.01) << change;
    EXPECT_FALSE(doubtful_kind(two_kinds(change, 0.08))) << change;
    EXPECT_EQ(pay_slowest(two_kinds(change, 0.11)).slowest, "near_one") << change;
  }
}

TEST(slower_now, goes_by_speedups_and_not_by_times) {
  two_paces machine{8};
  kind_blocks before{"own", {}}, now{"own", {}}, slow{"own", {}};
  for (int i = 0; i < 8; ++i) before.blocks.push_back(machine.take(1, 0.5));
  for (int i = 0; i < 8; ++i) now.blocks.push_back(machine.take(1, 0.5));
  for (int i = 0; i < 8; ++i) slow.blocks.push_back(machine.take(1, 0.7));
  EXPECT_FALSE(slower_now(before, now));
  ASSERT_TRUE(slower_now(before, slow));
  EXPECT_NEAR(*slower_now(before, slow), 1.4, 0.01);
}

TEST(pay_slowest, takes_no_noise_for_a_difference) {
  int found = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    auto paid = pay_slowest(kinds_of({{8, 1}, {2, 1}, {2, 1}, {2, 1}, {2, 1}}, 0.2, 17 * seed));
    found += paid.slowest || paid.in_doubt;
  }
  EXPECT_LE(found, 8);
}

// A gelu whose baseline guesses branches wrongly on its own contents alone, and whose candidate
// takes the same everywhere, now a tenth more, now less: by noise it was paid 5.5 in place of 11 in
// one of six.
TEST(pay_slowest, a_baseline_that_is_faster_elsewhere_and_noise_make_one_price) {
  int found = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    auto kinds = kinds_of({{8, 11}, {4, 11}, {4, 11}, {4, 11}}, 0.3, 17 * seed);
    for (size_t i = 1; i < kinds.size(); ++i)
      for (auto& x : kinds[i].blocks)
        for (auto& seconds : x.reference) seconds /= 2;
    found += pay_slowest(kinds).slowest.has_value();
  }
  EXPECT_LE(found, 8);
}

TEST(pay_slowest, one_block_is_paid_as_it_is) {
  auto paid = pay_slowest(kinds_of({{1, 2}}, 0));
  EXPECT_FALSE(paid.slowest);
  EXPECT_NEAR(paid.speedup.estimate, 2, 1e-9);
}

} // namespace paid_kinds_test

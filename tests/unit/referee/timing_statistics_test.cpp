#include <cmath>

#include <gtest/gtest.h>

#include "gpu/referee/timing_statistics.hpp"

using namespace kernelmill;

namespace {

timed_block block(double reference, double candidate) {
  return {{reference, reference}, {candidate, candidate}};
}

// Blocks whose speedup is 2, with noise that a seed decides.
std::vector<timed_block> noisy(size_t n, unsigned seed, double noise) {
  std::vector<timed_block> result;
  unsigned state = seed * 2654435761u + 1;
  for (size_t i = 0; i < n; ++i) {
    auto draw = [&] {
      state = state * 1664525u + 1013904223u;
      return 1 + noise * (static_cast<double>(state >> 8) / 0x1p24 - 0.5);
    };
    result.push_back({{2 * draw(), 2 * draw()}, {draw(), draw()}});
  }
  return result;
}

TEST(timing_statistics, linear_drift_cancels_within_a_block) {
  // reference, candidate, candidate, reference while the machine gets slower by 1 % a call.
  timed_block drifting{{1.00 * 2, 1.03 * 2}, {1.01, 1.02}};
  EXPECT_NEAR(std::exp(log_ratio(drifting)), 2, 1e-3);
}

TEST(timing_statistics, median_of_even_and_odd_counts) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(timing_statistics, equal_blocks_give_a_point) {
  for (size_t n : {3, 12}) {
    auto x = estimate_speedup(std::vector<timed_block>(n, block(2, 1)));
    EXPECT_NEAR(x.estimate, 2, 1e-12);
    EXPECT_NEAR(x.low, 2, 1e-12);
    EXPECT_NEAR(x.high, 2, 1e-12);
  }
}

TEST(timing_statistics, one_block_says_nothing) {
  auto x = estimate_speedup({block(2, 1)});
  EXPECT_EQ(x.low, 0);
  EXPECT_TRUE(std::isinf(x.high));
}

TEST(timing_statistics, six_blocks_span_their_range) {
  std::vector<timed_block> blocks;
  for (double x : {1.0, 1.1, 1.2, 1.3, 1.4, 1.5}) blocks.push_back(block(x, 1));
  auto x = estimate_speedup(blocks); // 2 * 2^-6 = 3.1 % lie outside, 6.2 % one step further in
  EXPECT_NEAR(x.low, 1.0, 1e-12);
  EXPECT_NEAR(x.high, 1.5, 1e-12);
}

TEST(timing_statistics, one_outlier_does_not_move_estimate_or_interval) {
  auto blocks = noisy(14, 3, 0.02); // below 12 blocks one outlier widens the interval
  blocks[4] = block(2, 50);
  auto x = estimate_speedup(blocks);
  EXPECT_NEAR(x.estimate, 2, 0.05);
  EXPECT_GT(x.low, 1.9);
  EXPECT_LT(x.high, 2.1);
}

// As the referee measures: block by block until the interval is narrow enough.
double coverage(const stopping_rule& rule, double noise) {
  constexpr unsigned tries = 1000;
  unsigned covered = 0;
  for (unsigned seed = 1; seed <= tries; ++seed) {
    auto all = noisy(rule.max_blocks, seed, noise);
    std::vector<timed_block> seen;
    while (stop_reason(seen, rule, 0).empty()) seen.push_back(all[seen.size()]);
    auto x = estimate_speedup(seen);
    covered += x.low <= 2 && 2 <= x.high;
  }
  return static_cast<double>(covered) / tries;
}

TEST(timing_statistics, the_interval_covers_the_truth_though_it_decides_when_to_stop) {
  for (double noise : {0.02, 0.1, 0.2, 0.4}) {
    EXPECT_GT(coverage({4, 8, 0.05, 1}, noise), 0.92) << noise;
    EXPECT_GT(coverage({5, 30, 0.03, 1}, noise), 0.92) << noise;
  }
}

TEST(timing_statistics, a_wider_interval_holds_both_spreads) {
  speedup_interval x{2, 2 * std::exp(-0.03), 2 * std::exp(0.04)};
  auto wider = widened(x, 0.04 / 1.96);
  EXPECT_EQ(wider.estimate, 2);
  EXPECT_NEAR(std::log(2 / wider.low), 0.05, 1e-12);
  EXPECT_NEAR(std::log(wider.high / 2), std::hypot(0.04, 0.04), 1e-12);
  EXPECT_EQ(widened(x, 0).low, x.low);
  speedup_interval nothing{1, 0, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(widened(nothing, 0.1).low, 0);
  EXPECT_TRUE(std::isinf(widened(nothing, 0.1).high));
}

TEST(timing_statistics, stops_for_each_of_its_reasons) {
  stopping_rule rule;
  std::vector<timed_block> clear(5, block(2, 1));
  EXPECT_EQ(stop_reason(clear, rule, 0.01), "the interval is narrow enough");
  EXPECT_EQ(stop_reason({clear.begin(), clear.begin() + 3}, rule, 0.01), "");
  EXPECT_EQ(stop_reason({clear.begin(), clear.begin() + 3}, rule, 2.0), "the time budget is spent");
  EXPECT_EQ(stop_reason(std::vector<timed_block>(3, block(1, 3)), rule, 0.01),
            "slower than half the reference in every block");
  EXPECT_EQ(stop_reason(std::vector<timed_block>(2, block(1, 3)), rule, 0.01), "");
  EXPECT_EQ(stop_reason(noisy(30, 5, 0.9), rule, 0.01), "the most blocks");
  EXPECT_EQ(stop_reason(noisy(8, 5, 0.9), rule, 0.01), "");
}

// -- order --------------------------------------------------------------------------------------

// Blocks of a candidate that takes 1 ms as the baseline does, in which who is called second is
// slower: the baseline by the one factor, the candidate by the other.
std::vector<timed_block> second_slower(double reference, double candidate, double noise) {
  auto blocks = noisy(12, 5, noise);
  for (auto& x : blocks)
    x = {{1e-3 * x.reference[0], 1e-3 * x.reference[1] * reference},
         {1e-3 * x.candidate[0] * candidate, 1e-3 * x.candidate[1]}};
  return blocks;
}

TEST(slowed_by_order, a_baseline_that_is_slower_after_the_candidate_is_seen) {
  auto slowed = slowed_by_order(second_slower(1.2, 1, 0.01));
  ASSERT_TRUE(slowed);
  EXPECT_NEAR(*slowed * *slowed, 1.2, 0.02);
  EXPECT_NEAR(estimate_speedup(second_slower(1.2, 1, 0.01)).estimate / *slowed,
              estimate_speedup(second_slower(1, 1, 0.01)).estimate, 0.02);
}

TEST(baseline_half_width, is_what_the_baseline_varies_by_within_kinds) {
  std::vector<kind_blocks> kinds{{"own", {}}, {"signs", {}}};
  for (int i = 0; i < 6; ++i) {
    kinds[0].blocks.push_back(
        {{1, 1}, {i + 1.0, 1}});                 // the candidate varies, the baseline does not
    kinds[1].blocks.push_back({{3, 3}, {1, 1}}); // nor does it here, though it is slower
  }
  EXPECT_NEAR(baseline_half_width(kinds), 0, 1e-12);
  for (int i = 0; i < 6; ++i) kinds[0].blocks[static_cast<size_t>(i)].reference[0] = 1 + i % 2;
  EXPECT_GT(baseline_half_width(kinds), 0.05);
}

TEST(widened, intervals_of_short_calls_hold_what_processes_differ_by) {
  EXPECT_NEAR(spread_of_processes(1, 1), host_process_spread, 1e-6);
  EXPECT_NEAR(spread_of_processes(10e-6, 1), 0.0814, 1e-3);
  EXPECT_NEAR(spread_of_processes(1, 10e-6), 0.0814, 1e-3);
}

TEST(slowed_by_order, whoever_is_second_may_be_slower) {
  EXPECT_FALSE(slowed_by_order(second_slower(1.1, 1.1, 0.01)));
  EXPECT_FALSE(slowed_by_order(second_slower(1, 1, 0.05)));
  EXPECT_FALSE(slowed_by_order({}));
}

TEST(trimmed_mean, leaves_out_the_largest_tenth) {
  EXPECT_EQ(trimmed_mean({}), 0);
  EXPECT_EQ(trimmed_mean({3}), 3);
  std::vector<double> x(20, 1.0);
  x[4] = x[7] = 1000;
  EXPECT_EQ(trimmed_mean(x), 1);
}

// -- kinds of contents --------------------------------------------------------------------------

// Kinds "k0", "k1", ... with a count of blocks and a speedup each.
std::vector<kind_blocks> kinds_of(const std::vector<std::pair<size_t, double>>& shape, double noise,
                                  unsigned seed = 1) {
  std::vector<kind_blocks> result;
  for (const auto& [count, speedup] : shape) {
    auto blocks = noisy(count, seed++, noise);
    for (auto& x : blocks)
      for (auto& value : x.candidate) value *= 2 / speedup;
    result.push_back({"k" + std::to_string(result.size()), std::move(blocks)});
  }
  return result;
}

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

TEST(pay_slowest, takes_no_noise_for_a_difference) {
  int found = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    auto paid = pay_slowest(kinds_of({{8, 1}, {2, 1}, {2, 1}, {2, 1}, {2, 1}}, 0.2, 17 * seed));
    found += paid.slowest || paid.in_doubt;
  }
  EXPECT_LE(found, 8);
}

TEST(pay_slowest, one_block_is_paid_as_it_is) {
  auto paid = pay_slowest(kinds_of({{1, 2}}, 0));
  EXPECT_FALSE(paid.slowest);
  EXPECT_NEAR(paid.speedup.estimate, 2, 1e-9);
}

} // namespace

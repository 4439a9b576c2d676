// The controller on a simulated machine: what honest candidates and tricks are paid.

#include "gpu/timing/controller.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "gpu/timing/thresholds.hpp"

namespace kernelmill::timing::controller_test {

/// A machine as an H200 was measured: batches of 2 ms, an overhead of 0.3 ms that grows by 0.8 %
/// of the calls, 3 us of noise in a single call and 6 us in a batch.
struct machine : batch_maker {
  explicit machine(uint64_t seed) : random(seed) {}

  std::mt19937_64 random;
  double call = 100e-6;       ///< of the baseline
  double speedup = 1;         ///< of the candidate's calls
  double beside = 1;          ///< times as long is a call of it that is kept apart
  double fence = 0;           ///< seconds that keeping calls apart costs, of either side
  double alone = 1;           ///< times as long is a call of it alone as one of many
  size_t slow_pattern = 0;    ///< of the candidate; 0: none
  double slower = 1;          ///< there
  double baseline_slowed = 1; ///< while the candidate is there
  double late = 0;            ///< seconds that the candidate's inputs come later
  double fixed_longer = 0;    ///< seconds that the candidate adds to the baseline's batches
  double drift = 0;           ///< of all times, from the first batch to the hundredth
  size_t disturbed_every = 0;
  bool candidate_there = true;
  size_t batches = 0;
  size_t ends_after = SIZE_MAX;
  std::vector<batch_form> seen;

  double noise(double deviation) { return std::normal_distribution<double>{0, deviation}(random); }

  bool make(batch_side side, const batch_order& order, size_t, batch_sample& into) override {
    if (++batches > ends_after) return false;
    seen.push_back(order.form);
    bool single = order.form == batch_form::single;
    bool candidate = side == batch_side::candidate;
    into.calls = single ? 1 : std::clamp(static_cast<unsigned>(2e-3 / call), 2u, 240u);
    double pace = 1 + drift * static_cast<double>(batches) / 100;
    double each = 0;
    for (unsigned i = 0; i < into.calls; ++i) {
      double one = candidate ? call / speedup * (single ? alone : 1) : call;
      auto pattern = order.patterns[i % order.patterns.size()];
      if (candidate && slow_pattern != 0 && pattern == slow_pattern) one *= slower;
      if (order.form == batch_form::apart) one = one * (candidate ? beside : 1) + fence;
      each += one;
    }
    if (!candidate && candidate_there) each *= baseline_slowed;
    into.inside = each * pace * (1 + noise(0.001));
    into.out = 302e-6 + 1.008 * into.inside + noise(single ? 3e-6 : 6e-6);
    if (!candidate && candidate_there) into.out += fixed_longer;
    into.fill = (single ? 0.2e-3 : 1e-3) + std::fabs(noise(5e-6)) + (candidate ? late : 0);
    into.disturbed = disturbed_every != 0 && batches % disturbed_every == 0;
    if (into.disturbed) into.out *= 3;
    return true;
  }

  bool expired() const override { return false; }

  calibration calibrate() {
    std::vector<batch_sample> samples;
    candidate_there = false;
    for (int i = 0; i < 20; ++i) {
      batch_sample x;
      make(batch_side::baseline, {i % 2 == 0 ? batch_form::nominal : batch_form::single, {0}}, 0,
           x);
      samples.push_back(x);
    }
    candidate_there = true;
    return calibrated(samples);
  }
};

struct outcome {
  paid_result paid;
  size_t batches = 0;
};

outcome judge(machine& x, uint64_t seed, size_t patterns = 14) {
  auto before = x.calibrate();
  x.batches = 0;
  std::mt19937_64 random{seed};
  timing_wish wish;
  wish.patterns = patterns;
  wish.own_streams = true;
  wish.call = x.call / x.speedup;
  wish.draw = [&] { return random(); };
  controller run{x, wish, before};
  EXPECT_EQ(run.run(), timing_end::decided);
  return {run.result().value(), x.batches};
}

/// Of a hundred machines that `set` made alike: what they pay, sorted.
template <class Set>
std::vector<double> lows(Set set) {
  std::vector<double> result;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    machine x{seed};
    set(x);
    result.push_back(judge(x, seed).paid.paid.speedup.low);
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(timing_controller, an_order_between_calls_costs_neither_side_anything) {
  for (double call : {10e-6, 100e-6}) {
    auto paid = lows([&](machine& x) {
      x.call = call;
      x.speedup = 2;
      x.fence = 8e-6;
    });
    EXPECT_GT(paid[50], 1.9) << call;
  }
}

TEST(timing_controller, calls_that_run_side_by_side_are_paid_as_kept_apart) {
  auto paid = lows([](machine& x) {
    x.call = 30e-6;
    x.speedup = 1.5;
    x.fence = 8e-6;
    x.beside = 1.5;
  });
  EXPECT_LT(paid[95], 1.05);
}

TEST(timing_controller, what_is_disturbed_again_and_again_counts_for_nothing) {
  machine x{1};
  x.disturbed_every = 2; // one of each pair
  auto before = x.calibrate();
  std::mt19937_64 random{1};
  timing_wish wish;
  wish.call = x.call;
  wish.draw = [&] { return random(); };
  controller run{x, wish, before};
  EXPECT_EQ(run.run(), timing_end::decided);
  EXPECT_FALSE(run.result());
}

TEST(timing_controller, a_slow_pattern_that_takes_all_the_time_is_paid_as_its_batch_shows) {
  machine x{1};
  x.slow_pattern = 3;
  x.slower = 1000;
  auto before = x.calibrate();
  std::mt19937_64 random{1};
  timing_wish wish;
  wish.patterns = 5;
  wish.one_by_one = true;
  wish.most_more = 0;
  wish.draw = [&] { return random(); };
  controller run{x, wish, before};
  EXPECT_EQ(run.run(), timing_end::decided);
  EXPECT_EQ(run.result()->slow_pattern, 3u);
  EXPECT_LT(run.result()->paid.speedup.high, 0.01);
  EXPECT_LE(run.pairs().size(), batch_counts{}.least + 7); // each suspect once
}

TEST(timing_controller, the_noise_of_the_machine_makes_the_interval_wider) {
  machine x{1};
  auto before = x.calibrate();
  before.noise = host_noise;
  std::mt19937_64 random{1};
  timing_wish wish;
  wish.call = x.call;
  wish.nominal = host_nominal;
  wish.draw = [&] { return random(); };
  controller run{x, wish, before};
  EXPECT_EQ(run.run(), timing_end::decided);
  auto paid = run.result()->paid;
  EXPECT_GE(paid.pairs, host_nominal.least);
  EXPECT_GT(paid.speedup.relative_half_width(), 1.9 * host_noise.of_processes);
}

TEST(timing_controller, pays_what_a_candidate_is_faster_by) {
  for (double truth : {0.4, 0.9, 1.0, 1.3, 2.0, 4.0}) {
    int covered = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      machine x{seed};
      x.speedup = truth;
      auto found = judge(x, seed).paid.paid.speedup;
      EXPECT_NEAR(found.estimate / truth, 1, 0.03) << truth;
      covered += found.low <= truth && truth <= found.high ? 1 : 0;
    }
    EXPECT_GE(covered, 95) << truth;
  }
}

TEST(timing_controller, needs_few_batches) {
  machine x{1};
  x.call = 1e-3;
  x.speedup = 2;
  EXPECT_LE(judge(x, 1).batches, 2 * (batch_counts{}.least + 2 + apart_batches + 4 + 8));
}

TEST(timing_controller, calls_no_copy_faster) {
  EXPECT_LE(lows([](machine&) {}).back(), 1.0);
}

TEST(timing_controller, pays_a_short_copy_no_more) {
  auto found = lows([](machine& x) { x.call = 10e-6; });
  EXPECT_LE(found[97], 1.02);
}

TEST(timing_controller, pays_merged_calls_what_one_alone_gains) {
  auto found = lows([](machine& x) {
    x.speedup = 2.2;
    x.alone = 2.2;
  });
  EXPECT_LE(found[97], 1.03);
}

TEST(timing_controller, pays_the_slowest_pattern) {
  auto found = lows([](machine& x) {
    x.speedup = 1.5;
    x.slow_pattern = 7;
    x.slower = 1.5;
  });
  EXPECT_LE(found[97], 1.02);
}

TEST(timing_controller, names_the_slow_pattern) {
  machine x{3};
  x.slow_pattern = 5;
  x.slower = 1.3;
  auto found = judge(x, 3).paid;
  EXPECT_EQ(found.slow_pattern, 5u);
  EXPECT_NEAR(found.times_slower, 1.3, 0.05);
}

TEST(timing_controller, believes_no_slowed_baseline) {
  auto found = lows([](machine& x) { x.baseline_slowed = 2; });
  EXPECT_LE(found[97], believed_slowdown * 1.01);
}

TEST(timing_controller, subtracts_no_overhead_that_a_candidate_made) {
  auto found = lows([](machine& x) { x.fixed_longer = 0.5e-3; });
  EXPECT_LE(found[97], 1.02);
}

TEST(timing_controller, charges_work_before_the_release) {
  machine x{4};
  x.speedup = 2;
  x.late = 1e-3;
  EXPECT_LT(judge(x, 4).paid.paid.speedup.estimate, 1.05);
}

TEST(timing_controller, follows_a_machine_that_gets_slower) {
  machine x{5};
  x.speedup = 1.5;
  x.drift = 0.05;
  EXPECT_NEAR(judge(x, 5).paid.paid.speedup.estimate, 1.5, 0.05);
}

TEST(timing_controller, takes_disturbed_batches_again) {
  machine x{6};
  x.speedup = 1.5;
  x.disturbed_every = 7;
  EXPECT_NEAR(judge(x, 6).paid.paid.speedup.estimate, 1.5, 0.05);
}

TEST(timing_controller, ends_where_the_maker_ends) {
  machine x{7};
  auto before = x.calibrate();
  x.ends_after = x.batches + 5;
  std::mt19937_64 random{7};
  timing_wish wish;
  wish.call = x.call;
  wish.draw = [&] { return random(); };
  controller run{x, wish, before};
  EXPECT_EQ(run.run(), timing_end::over);
}

TEST(timing_controller, orders_batches_by_a_secret) {
  auto forms = [](uint64_t seed) {
    std::mt19937_64 random{seed};
    timing_wish wish;
    wish.patterns = 14;
    wish.call = 1e-4;
    wish.draw = [&] { return random(); };
    std::vector<batch_form> result;
    for (const auto& x : plan_of(wish)) result.push_back(x.form);
    return result;
  };
  EXPECT_EQ(forms(1), forms(1));
  EXPECT_NE(forms(1), forms(2));
}

TEST(timing_overhead, is_fixed_and_grows) {
  std::vector<batch_sample> samples;
  for (int i = 0; i < 5; ++i) {
    samples.push_back({1, 0, 302e-6 + 100e-6, 100e-6, false});
    samples.push_back({20, 0, 302e-6 + 1.008 * 2e-3, 2e-3, false});
  }
  auto found = fit_overhead(samples);
  EXPECT_NEAR(found.growth, 0.0084, 0.001);
  EXPECT_NEAR(found.calls({10, 0, 302e-6 + 1.008 * 1e-3, 0, false}), 1e-3, 2e-6);
}

TEST(timing_overhead, leaves_a_share_in_any_case) {
  overhead x{1, 0};
  EXPECT_DOUBLE_EQ(x.calls({10, 0, 1e-3, 0, false}), least_share * 1e-3);
}

} // namespace kernelmill::timing::controller_test

// From rows to what is paid: what is fixed is learned from trusted rows, and nothing that a
// candidate does is subtracted.

#include <random>

#include <gtest/gtest.h>

#include "gpu/referee/row_arithmetic.hpp"

using namespace kernelmill;

namespace row_arithmetic_test {

constexpr double fixed = 0.2e-3;
constexpr double call = 50e-6;
constexpr double most_spread = 0.2e-3;

row_times row(unsigned calls, double seconds, double gap = 0) {
  row_times x;
  x.calls = calls;
  x.done = seconds - gap;
  x.gap = gap;
  return x;
}

// Rows of 10 and 40 calls; every third takes longer, as when another context comes.
std::vector<row_times> baseline_rows(double disturbance = 0, double every_row = 0) {
  std::vector<row_times> result;
  for (int i = 0; i < 12; ++i)
    for (unsigned calls : {40u, 10u}) {
      double seconds = fixed + every_row + calls * call + (i % 3 == 0 ? disturbance : 0);
      result.push_back(row(calls, seconds, 30e-6));
    }
  return result;
}

TEST(fit_line, finds_what_is_fixed_and_what_is_a_calls) {
  auto line = fit_line(baseline_rows());
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->intercept, fixed, 1e-9);
  EXPECT_NEAR(line->call, call, 1e-9);
  EXPECT_NEAR(line->error, 0, 1e-9);
}

TEST(fit_line, disturbed_rows_do_not_move_it) {
  auto line = fit_line(baseline_rows(1e-3));
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->intercept, fixed, 0.02 * fixed);
  EXPECT_NEAR(line->call, call, 0.02 * call);
}

TEST(fit_line, needs_two_lengths_that_are_apart) {
  EXPECT_FALSE(fit_line({}));
  EXPECT_FALSE(fit_line({row(40, 2e-3), row(40, 2.1e-3)}));
  EXPECT_FALSE(fit_line({row(40, 2e-3), row(30, 1.5e-3)}));
  EXPECT_TRUE(fit_line({row(40, 2e-3), row(10, 0.5e-3)}));
}

// How late a process makes its first launch differs more than all else.
TEST(fit_line, late_first_launches_do_not_move_it) {
  auto rows = baseline_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    bool is_long = rows[i].calls == 40;
    rows[i].launched = (is_long ? 20e-6 : 70e-6) + (i % 5 == 0 ? 0.15e-3 : 0);
    rows[i].done += rows[i].launched;
  }
  auto line = fit_line(rows);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->call, call, 1e-9);
  EXPECT_NEAR(line->launch, 20e-6, 1e-9) << "of long rows, as a candidate's are";
  EXPECT_NEAR(line->intercept, fixed + 20e-6, 1e-9);
  for (const auto& x : rows)
    EXPECT_NEAR(at_usual_launch(x, *line).row(), line->intercept + x.calls * call, 1e-9);
}

// As most of a few may be.
TEST(fit_line, late_first_launches_of_most_long_rows_do_not_move_it) {
  auto rows = baseline_rows();
  unsigned n = 0;
  for (auto& x : rows) {
    x.launched = 20e-6 + (x.calls == 40 && n++ % 6 != 0 ? 0.15e-3 : 0);
    x.done += x.launched;
  }
  auto line = fit_line(rows);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->launch, 20e-6, 1e-9);
  EXPECT_GT(line->launch_error, 15e-6) << "of two, however alike";
  for (auto& x : rows) x.launched += x.calls == 40 ? 0.2e-3 : 0; // no row is left
  EXPECT_NEAR(fit_line(rows)->launch, 0.22e-3, 1e-9) << "the least";
}

// A library that waits for its work within a call: the first launch has returned when a whole call
// is over, and what is left of a short row is less than what is fixed.
TEST(fit_line, of_calls_that_wait_for_their_work_is_the_same) {
  auto rows = baseline_rows();
  for (auto& x : rows) x.launched = call + 15e-6;
  auto line = fit_line(rows);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->call, call, 1e-9);
  EXPECT_NEAR(line->intercept, fixed, 1e-9);
}

// Five rows of each length as the referee makes them, of which others made some 0.4 ms longer.
std::vector<row_times> busy_rows(size_t disturbed_short, size_t disturbed_long) {
  std::vector<row_times> result;
  for (unsigned i = 0; i < 5; ++i) {
    unsigned calls = 36 + i % 4;
    result.push_back(
        row(calls, fixed + calls * call + i * 2e-6 + (i < disturbed_long ? 0.4e-3 : 0)));
    result.push_back(
        row(10, fixed + 10 * call + i * 2e-6 + (i >= 5 - disturbed_short ? 0.4e-3 : 0)));
  }
  return result;
}

TEST(least_rows, of_a_busy_machine_are_those_of_a_quiet_one) {
  for (auto [few, many] : {std::pair<size_t, size_t>{2, 0}, {0, 2}, {2, 2}, {2, 1}}) {
    auto least = least_rows(busy_rows(few, many));
    EXPECT_EQ(least.size(), 6u);
    EXPECT_TRUE(are_alike(least)) << few << ' ' << many;
    auto line = fit_line(least);
    ASSERT_TRUE(line);
    EXPECT_NEAR(line->call, call, 0.01 * call) << few << ' ' << many;
    EXPECT_NEAR(line->intercept, fixed, 0.05 * fixed) << few << ' ' << many;
  }
}

// A line through all rows would be off by a quarter there.
TEST(least_rows, are_not_alike_where_most_rows_of_a_length_were_disturbed) {
  auto rows = busy_rows(3, 0);
  EXPECT_LT(fit_line(rows)->call, 0.8 * call);
  EXPECT_FALSE(are_alike(least_rows(rows)));
  auto more = busy_rows(3, 1);
  rows.insert(rows.end(), more.begin(), more.end());
  EXPECT_TRUE(are_alike(least_rows(rows)));
  EXPECT_NEAR(fit_line(least_rows(rows))->call, call, 0.01 * call);
}

TEST(least_rows, of_one_length_tell_no_line_and_no_more_are_taken) {
  EXPECT_TRUE(are_alike(least_rows({row(1, 2e-3), row(1, 2.001e-3)})));
}

// Of the others the gates were forced.
TEST(least_rows, are_too_few_where_a_length_has_hardly_any) {
  auto rows = busy_rows(0, 0);
  EXPECT_TRUE(are_enough(rows));
  std::erase_if(rows,
                [](const row_times& x) { return x.calls == 37 || x.calls == 38 || x.calls == 39; });
  EXPECT_FALSE(are_enough(rows)) << "two long rows";
  EXPECT_TRUE(are_enough({row(1, 2e-3), row(1, 2e-3), row(1, 2e-3)})) << "of one length";
}

TEST(free_intercept, is_the_baselines_own) {
  row_line line{fixed, call, 0};
  EXPECT_NEAR(free_intercept(line, line), fixed, 1e-12);
  row_line shorter{fixed / 2, call, 0};
  EXPECT_NEAR(free_intercept(shorter, line), fixed / 2, 1e-12);
}

// A candidate that keeps the GPU busy for 1 ms in each of the baseline's rows.
TEST(free_intercept, cannot_be_made_longer_by_a_candidate) {
  row_line quiet{fixed, call, 0};
  auto line = fit_line(baseline_rows(0, 1e-3));
  ASSERT_TRUE(line);
  EXPECT_GT(line->intercept, 5 * fixed);
  EXPECT_LT(free_intercept(*line, quiet), 1.15 * fixed);
}

TEST(call_seconds, of_rows_of_any_length_are_the_same) {
  for (unsigned calls : {31u, 36u, 39u})
    EXPECT_NEAR(call_seconds(row(calls, fixed + calls * call), fixed, 0), call, 1e-12);
}

TEST(call_seconds, count_until_outputs_are_seen) {
  auto early = row(40, fixed + 40 * call, 1e-3); // said to be done 1 ms before
  EXPECT_NEAR(call_seconds(early, fixed, 0), call, 1e-12);
}

TEST(call_seconds, have_what_was_done_before_the_clock) {
  EXPECT_NEAR(call_seconds(row(40, fixed + 10 * call), fixed, 30 * call), call, 1e-12);
}

TEST(call_seconds, are_never_made_of_what_is_subtracted) {
  EXPECT_NEAR(call_seconds(row(10, fixed), fixed, 0), 0.02 * fixed, 1e-12);
}

TEST(believed_share, takes_no_baseline_that_is_much_slower_than_alone) {
  EXPECT_EQ(believed_share(call, call), 1);
  EXPECT_EQ(believed_share(1.04 * call, call), 1);
  EXPECT_NEAR(2 * call * believed_share(2 * call, call), 1.05 * call, 1e-12);
}

std::vector<double> usual_contents() {
  std::vector<double> result;
  for (int i = 0; i < 16; ++i) result.push_back(2e-3 + (i % 4) * 2e-6);
  return result;
}

std::vector<contents_pair> pairs_of(double longer, size_t count = 12) {
  std::vector<contents_pair> result;
  for (size_t i = 0; i < count; ++i) {
    double seconds = 2e-3 + static_cast<double>(i % 4) * 2e-6;
    result.push_back({seconds + longer, seconds});
  }
  return result;
}

TEST(charges, nothing_where_contents_come_as_the_baselines) {
  for (double x : charges(pairs_of(0), usual_contents(), most_spread)) EXPECT_EQ(x, 0);
  for (double x : charges(pairs_of(8e-6), usual_contents(), most_spread)) EXPECT_EQ(x, 0);
}

TEST(charges, a_candidate_that_makes_them_come_later_pays) {
  for (double x : charges(pairs_of(0.5e-3), usual_contents(), most_spread))
    EXPECT_NEAR(x, 0.5e-3, 30e-6);
  for (double x : charges(pairs_of(0.1e-3), usual_contents(), most_spread))
    EXPECT_NEAR(x, 0.1e-3, 30e-6);
}

// Work left on the GPU makes some of the baseline's contents come late, too.
TEST(charges, noise_that_a_candidate_made_excuses_no_more_than_so_much) {
  auto usual = usual_contents();
  for (size_t i = 0; i < usual.size(); i += 3) usual[i] += 1.5e-3;
  for (double x : charges(pairs_of(0.45e-3), usual, most_spread)) EXPECT_GT(x, 0.3e-3);
}

TEST(charges, a_single_row_pays_for_itself) {
  auto pairs = pairs_of(0);
  pairs[5].candidate += 1e-3;
  auto found = charges(pairs, usual_contents(), most_spread);
  EXPECT_NEAR(found[5], 1e-3, 30e-6);
  EXPECT_EQ(found[4], 0);
}

TEST(lengths, leave_a_set_unasked_and_are_two_that_are_apart) {
  for (unsigned sets = 4; sets <= 500; ++sets) {
    unsigned least = sets;
    for (uint64_t draw = 0; draw < 200; ++draw) {
      unsigned calls = long_calls(sets, draw * 0x9e3779b97f4a7c15u);
      EXPECT_LT(calls, sets);
      EXPECT_GE(4 * calls, 3 * sets - 4);
      least = std::min(least, calls);
    }
    EXPECT_TRUE(fit_line({row(least, 1e-3), row(short_calls(sets), 0.5e-3)})) << sets;
    EXPECT_TRUE(fit_line({row(sets - 1, 1e-3), row(short_calls(sets), 0.5e-3)})) << sets;
  }
}

// A candidate five times as fast has rows of 1.7 ms, of which an error of 50 us is 3 %.
TEST(lengths, short_rows_tell_what_a_slow_baseline_has_besides_calls) {
  std::mt19937_64 draws(7);
  auto noise = [&] { return (static_cast<double>(draws() % 2001) - 1000) * 15e-6; };
  const unsigned sets = 31;
  double worst = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<row_times> rows;
    for (int i = 0; i < 8; ++i)
      for (unsigned calls : {long_calls(sets, draws()), short_calls(sets)})
        rows.push_back(row(calls, 0.2e-3 + calls * 357e-6 * (1 + noise())));
    worst = std::max(worst, std::fabs(fit_line(rows)->intercept - 0.2e-3));
  }
  EXPECT_LT(worst, 20e-6);
}

TEST(lengths, a_row_is_long_where_there_are_sets) {
  EXPECT_EQ(sets_for(1e-3, 1e-3, 500), 4u);
  EXPECT_NEAR(sets_for(1e-5, 1e-5, 500) * 0.75 * 1e-5, 1.5e-3, 3e-5);
  EXPECT_EQ(sets_for(1e-6, 1e-6, 500), 500u);
  EXPECT_EQ(sets_for(1e-6, 1e-6, 16), 16u);
  EXPECT_EQ(sets_for(10e-3, 30e-3, 500), 4u);
  EXPECT_EQ(sets_for(1e-5, 1e-3, 500), 40u); // the slower one's row is bounded
  EXPECT_GE(sets_for(0, 0, 8), 4u);
}

} // namespace row_arithmetic_test

// What is paid for rows of candidates that are honest, and of some that are not.

#include <gtest/gtest.h>

#include "gpu/referee/device/clocked_rows.hpp"
#include "gpu/referee/doubts.hpp"
#include "gpu/referee/paid_kinds.hpp"

using namespace kernelmill;

namespace clocked_rows_test {

constexpr double fixed = 0.15e-3; // the GPU's turn from one process to another
constexpr double usual_contents = 2e-3;
const row_line quiet{fixed, 50e-6, 0};

row_times row(unsigned calls, double call, double more = 0, double contents = usual_contents) {
  row_times x;
  x.calls = calls;
  x.contents = contents;
  x.done = fixed + calls * call + more;
  return x;
}

// `candidate` makes the row of pair i, with so many calls.
template <class Make>
clocked_rows rows_of(Make candidate, double baseline = 50e-6) {
  clocked_rows result;
  for (unsigned i = 0; i < 12; ++i) {
    unsigned calls = 45 + i % 14;
    auto reference = row(58 - i % 13, baseline);
    result.pairs.push_back({0, reference, candidate(i, calls)});
    result.baseline.push_back(reference);
    result.baseline.push_back(row(15, baseline));
  }
  return result;
}

paid_speedup paid(const clocked_rows& rows) {
  auto times = times_of(rows, quiet, {"normal"}, [](size_t) { return 1.05 * usual_contents; });
  EXPECT_TRUE(times);
  return times ? pay_slowest(times->kinds) : paid_speedup{};
}

TEST(times_of, a_copy_is_as_fast_and_twice_as_fast_is_2_whatever_is_fixed) {
  auto copy = paid(rows_of([](unsigned, unsigned calls) { return row(calls, 50e-6); }));
  EXPECT_NEAR(copy.speedup.estimate, 1, 1e-6);
  EXPECT_NEAR(copy.reference_seconds, 50e-6, 1e-9);
  auto twice = paid(rows_of([](unsigned, unsigned calls) { return row(calls, 25e-6); }));
  EXPECT_NEAR(twice.speedup.estimate, 2, 1e-6);
  auto slow = paid(rows_of([](unsigned, unsigned calls) { return row(calls, 100e-6); }));
  EXPECT_NEAR(slow.speedup.estimate, 0.5, 1e-6);
}

TEST(times_of, delays_in_some_rows_take_nothing_off_the_others) {
  for (unsigned every : {2u, 3u, 5u}) {
    auto found = paid(rows_of(
        [&](unsigned i, unsigned calls) { return row(calls, 50e-6, i % every == 0 ? 1e-3 : 0); }));
    EXPECT_LE(found.speedup.estimate, 1 + 1e-9) << every;
    EXPECT_LE(found.speedup.low, 1 + 1e-9) << every;
  }
}

TEST(times_of, rows_that_others_made_longer_say_nothing) {
  auto rows = rows_of([](unsigned, unsigned calls) { return row(calls, 50e-6); });
  for (size_t i = 0; i < rows.pairs.size(); i += 3) rows.pairs[i].reference.done += 2e-3;
  auto times = times_of(rows, quiet, {"normal"}, [](size_t) { return 1.05 * usual_contents; });
  ASSERT_TRUE(times);
  EXPECT_EQ(times->kinds[0].blocks.size(), 8u);
  EXPECT_NEAR(pay_slowest(times->kinds).speedup.high, 1, 1e-6);
}

row_times launched(row_times x, double late) {
  x.launched = 20e-6 + late;
  x.done += late;
  return x;
}

// On two H200 the short rows of a whole verdict began 45 us later than its long ones.
TEST(times_of, short_rows_that_begin_later_make_no_candidate_faster) {
  auto rows = rows_of([](unsigned, unsigned calls) { return launched(row(calls, 10e-6), 0); });
  for (size_t i = 0; i < rows.pairs.size(); ++i) {
    rows.pairs[i].reference = launched(rows.pairs[i].reference, 0);
    rows.baseline[2 * i] = rows.pairs[i].reference;
    rows.baseline[2 * i + 1] = launched(rows.baseline[2 * i + 1], 45e-6);
  }
  auto found = paid(rows);
  EXPECT_NEAR(found.speedup.estimate, 5, 1e-6);
  EXPECT_NEAR(found.candidate_seconds, 10e-6, 1e-9);
}

TEST(times_of, first_launches_that_are_late_in_some_rows_of_both_sides_change_nothing) {
  auto late = [](unsigned i) { return i % 3 == 0 ? 0.15e-3 : (i % 4) * 10e-6; };
  auto rows =
      rows_of([&](unsigned i, unsigned calls) { return launched(row(calls, 25e-6), late(i)); });
  for (unsigned i = 0; i < rows.pairs.size(); ++i) {
    rows.pairs[i].reference = launched(rows.pairs[i].reference, late(i + 1));
    rows.baseline[2 * i] = rows.pairs[i].reference;
    rows.baseline[2 * i + 1] = launched(rows.baseline[2 * i + 1], late(i + 2));
  }
  auto found = paid(rows);
  EXPECT_NEAR(found.reference_seconds, 50e-6, 0.1e-6);
  EXPECT_NEAR(found.speedup.estimate, 2, 0.02);
}

// No way is known in which a candidate could do that.
TEST(times_of, long_rows_that_launch_late_are_not_believed) {
  auto rows = rows_of([](unsigned, unsigned calls) { return launched(row(calls, 50e-6), 0); });
  for (size_t i = 0; i < rows.pairs.size(); ++i) {
    rows.pairs[i].reference = launched(rows.pairs[i].reference, 0.1e-3);
    rows.baseline[2 * i] = rows.pairs[i].reference;
    rows.baseline[2 * i + 1] = launched(rows.baseline[2 * i + 1], 0);
  }
  EXPECT_LT(paid(rows).speedup.estimate, 1.01);
  auto times = times_of(rows, quiet, {"normal"}, [](size_t) { return 1.05 * usual_contents; });
  ASSERT_TRUE(times);
  double row = 51 * 50e-6; // of calls
  EXPECT_NEAR(times->not_subtracted(), 80e-6, 1e-6) << "a tenth of what is fixed and 5 us are free";
  EXPECT_NEAR(most_withheld(*times, rows.pairs), row / (row - 80e-6), 0.002);
}

TEST(most_withheld, is_nothing_where_all_may_be_subtracted) {
  auto rows = rows_of([](unsigned, unsigned calls) { return row(calls, 50e-6); });
  auto times = times_of(rows, quiet, {"normal"}, [](size_t) { return 1.05 * usual_contents; });
  ASSERT_TRUE(times);
  EXPECT_EQ(times->not_subtracted(), 0);
  EXPECT_EQ(most_withheld(*times, rows.pairs), 1);
}

// A host that became slower by 0.1 ms a row, and rows apart of half the calls behind a gate.
TEST(times_of, what_is_withheld_is_no_overlap) {
  constexpr double more = 0.1e-3;
  auto rows = rows_of([&](unsigned, unsigned calls) { return row(calls, 50e-6, more); });
  for (unsigned i = 0; i < rows.pairs.size(); ++i) {
    rows.pairs[i].reference.done += more;
    rows.baseline[2 * i] = rows.pairs[i].reference;
    rows.baseline[2 * i + 1].done += more;
    rows.apart.push_back({0, row(25, 50e-6, more), row(25, 50e-6, more)});
  }
  auto times = times_of(rows, quiet, {"normal"}, [](size_t) { return 1.05 * usual_contents; });
  ASSERT_TRUE(times);
  EXPECT_GT(times->not_subtracted(), 50e-6);
  EXPECT_EQ(times->beside, 0) << "it may be, and the low end says so";
  EXPECT_LE(times->most_beside, 2 * more / 50);
}

// Work that begins with the baseline's contents makes its rows longer, and no call of it slower.
TEST(times_of, a_candidate_that_makes_the_baselines_rows_longer_is_charged_for_overlap) {
  for (double more : {0.0, 0.1e-3, 0.3e-3}) {
    auto rows = rows_of([](unsigned, unsigned calls) { return row(calls, 45e-6); });
    for (unsigned i = 0; i < rows.pairs.size(); ++i) {
      rows.pairs[i].reference.done += more;
      rows.baseline[2 * i] = rows.pairs[i].reference;
      rows.baseline[2 * i + 1].done += more;
      rows.apart.push_back({0, row(25, 50e-6, more), row(25, 50e-6)});
    }
    auto times = times_of(rows, quiet, {"normal"}, [](size_t) { return 1.05 * usual_contents; });
    ASSERT_TRUE(times);
    EXPECT_NEAR(times->most_beside, 5e-6, 0.5e-6) << more;
    EXPECT_LE(times->beside, times->most_beside) << more;
  }
}

// A tenth of each row apart is computed while its contents still come.
TEST(times_of, a_candidate_that_works_before_the_clock_in_rows_apart_is_charged_for_overlap) {
  for (size_t apart : {3u, 4u, 12u}) {
    auto rows = rows_of([](unsigned, unsigned calls) { return row(calls, 45e-6); });
    for (unsigned i = 0; i < apart; ++i) {
      double before = 50 * 5e-6;
      rows.apart.push_back({0, row(50, 50e-6), row(50, 50e-6, -before, usual_contents + before)});
    }
    auto times = times_of(rows, quiet, {"normal"}, [](size_t) { return 1.05 * usual_contents; });
    ASSERT_TRUE(times);
    EXPECT_NEAR(times->beside, 5e-6, 0.5e-6) << apart;
  }
}

TEST(times_of, a_candidate_that_makes_the_baselines_rows_apart_longer_is_charged_for_overlap) {
  auto rows = rows_of([](unsigned, unsigned calls) { return row(calls, 48.2e-6); });
  for (int i = 0; i < 12; ++i) rows.apart.push_back({0, row(50, 50e-6, 0.1e-3), row(50, 50e-6)});
  auto known = quiet;
  known.to_keep_apart = 0.4e-6;
  auto times = times_of(rows, known, {"normal"}, [](size_t) { return 1.05 * usual_contents; });
  ASSERT_TRUE(times);
  EXPECT_NEAR(times->beside, 1.4e-6, 0.05e-6);
}

TEST(to_keep_apart, is_what_the_baseline_took_more_while_it_was_quiet) {
  row_line line{fixed, 15e-6, 1e-6, 20e-6};
  std::vector<row_times> apart;
  EXPECT_EQ(to_keep_apart(apart, line), most_to_keep_apart) << "unknown";
  for (int i = 0; i < 5; ++i) {
    apart.push_back(row(100, 15.5e-6, i * 40e-6)); // launched sooner or later
    apart.back().launched = 20e-6 + i * 40e-6;
  }
  EXPECT_NEAR(to_keep_apart(apart, line), 0.92e-6, 1e-9) << "0.4 us and twice the error are free";
  for (auto& x : apart) x.done += 1e-3;
  EXPECT_EQ(to_keep_apart(apart, line), most_to_keep_apart);
}

// The baseline's rows apart launch as late; with the usual launch none of them is longer.
TEST(times_of, late_launches_of_rows_apart_are_no_overlap) {
  auto rows = rows_of([&](unsigned, unsigned calls) { return launched(row(calls, 25e-6), 0); });
  for (unsigned i = 0; i < 12; ++i) {
    rows.pairs[i].reference = launched(rows.pairs[i].reference, 0);
    rows.baseline[2 * i] = rows.pairs[i].reference;
    rows.baseline[2 * i + 1] = launched(rows.baseline[2 * i + 1], 0);
    double late = i % 2 == 0 ? 90e-6 : 0;
    rows.apart.push_back({0, launched(row(50, 50e-6), late), launched(row(50, 25e-6), late)});
  }
  EXPECT_NEAR(paid(rows).speedup.estimate, 2, 0.001);
}

TEST(times_of, a_candidate_that_is_fast_in_some_rows_only_is_paid_for_the_others_too) {
  for (unsigned fast : {3u, 4u}) { // a third or a quarter of the rows, by a third faster
    auto rows = rows_of(
        [&](unsigned i, unsigned calls) { return row(calls, i % fast == 0 ? 37e-6 : 50e-6); });
    auto found = paid(rows);
    EXPECT_LE(found.speedup.low, 1 + 1e-9) << fast;
    for (auto& x : rows.pairs)
      if (x.candidate.calls % fast == 0) x.reference.done += 2e-3; // others are there as well
    EXPECT_LE(paid(rows).speedup.low, 1.02) << fast;
  }
}

TEST(times_of, rows_that_others_made_longer_on_either_side_say_nothing) {
  auto rows =
      rows_of([](unsigned i, unsigned calls) { return row(calls, 25e-6, i % 4 == 0 ? 1e-3 : 0); });
  for (size_t i = 1; i < rows.pairs.size(); i += 4) rows.pairs[i].reference.done += 1e-3;
  EXPECT_NEAR(paid(rows).speedup.low, 2, 0.05);
}

TEST(times_of, work_done_before_the_clock_is_paid_as_if_it_were_done_later) {
  auto found = paid(rows_of([](unsigned, unsigned calls) {
    return row(calls, 5e-6, 0, usual_contents + calls * 45e-6); // nine tenths of it
  }));
  EXPECT_NEAR(found.speedup.estimate, 1, 0.03);
}

TEST(times_of, done_said_early_is_no_gain) {
  auto found = paid(rows_of([](unsigned, unsigned calls) {
    auto x = row(calls, 50e-6);
    x.gap = 0.9 * x.done;
    x.done -= x.gap;
    return x;
  }));
  EXPECT_NEAR(found.speedup.estimate, 1, 1e-6);
}

TEST(times_of, a_baseline_made_slow_is_not_believed) {
  auto found = paid(rows_of([](unsigned, unsigned calls) { return row(calls, 50e-6); }, 80e-6));
  EXPECT_NEAR(found.speedup.estimate, 1.05, 0.01);
}

// Calls as they come and calls apart; to keep them apart costs either side so many seconds of a
// call.
paid_speedup paid_apart(double candidate, double candidate_apart, double cost) {
  auto rows = rows_of([&](unsigned, unsigned calls) { return row(calls, candidate); });
  for (unsigned i = 0; i < 4; ++i)
    rows.apart.push_back({0, row(50, 50e-6 + cost), row(50, candidate_apart + cost)});
  rows.apart[2].candidate.done += 1e-3; // by others
  return paid(rows);
}

TEST(times_of, calls_that_run_side_by_side_are_paid_as_if_they_did_not) {
  for (double beside : {25e-6, 10e-6, 45e-6}) {
    auto found = paid_apart(50e-6 - beside, 50e-6, 1.3e-6);
    EXPECT_NEAR(found.speedup.estimate, 1, 0.01) << beside;
    EXPECT_LE(found.speedup.low, 1.01) << beside;
  }
}

TEST(times_of, what_keeping_calls_apart_costs_is_no_work) {
  for (double cost : {0.0, 0.4e-6, 1.3e-6}) {
    EXPECT_NEAR(paid_apart(25e-6, 25e-6, cost).speedup.estimate, 2, 1e-6) << cost;
    EXPECT_NEAR(paid_apart(25e-6, 25.4e-6, cost).speedup.estimate, 2, 1e-6) << cost;
  }
  // A baseline whose own calls run side by side is no excuse beyond that.
  auto rows = rows_of([](unsigned, unsigned calls) { return row(calls, 25e-6); });
  rows.apart.assign(4, {0, row(50, 100e-6), row(50, 50e-6)});
  EXPECT_NEAR(paid(rows).speedup.estimate, 50 / 48.0, 0.01);
}

// A host took 8 % of its processors' time: a copy was charged 40 % of its call, by most of twelve
// rows of calls apart, and its interval was narrow.
TEST(times_of, a_candidate_that_was_disturbed_in_most_rows_of_calls_apart_is_not_charged_for_that) {
  auto rows = rows_of([](unsigned, unsigned calls) { return row(calls, 50e-6); });
  for (unsigned i = 0; i < 12; ++i)
    rows.apart.push_back(
        {0, row(50, 51e-6, i % 2 == 0 ? 1e-3 : 0), row(50, 51e-6, i < 7 ? 1e-3 : 0)});
  EXPECT_NEAR(paid(rows).speedup.estimate, 1, 1e-6);
  for (auto& x : rows.apart) x.reference = row(50, 51e-6); // then it is the candidate's own doing
  EXPECT_LT(paid(rows).speedup.high, 0.75);
  for (auto& x : rows.apart) x.candidate = row(50, 70e-6); // calls that do run side by side
  EXPECT_LT(paid(rows).speedup.high, 0.75);
}

TEST(times_of, a_kind_is_not_hidden_by_rows_that_are_left_out) {
  // One round of pairs, of which three with the task's own contents used up the time.
  clocked_rows rows;
  auto add = [&](size_t kind, double candidate, double more) {
    rows.pairs.push_back({kind, row(50, 50e-6), row(50, candidate, more)});
    rows.baseline.push_back(row(50, 50e-6));
    rows.baseline.push_back(row(15, 50e-6));
  };
  for (size_t i = 0; i < 6; ++i) {
    add(0, (25 + 0.1 * static_cast<double>(i % 2)) * 1e-6, i < 3 ? 0.6 : 0);
    add(i + 1, i < 2 ? 60e-6 : 25e-6, 0);
  }
  std::vector<std::string> names{"normal", "a", "b", "c", "d", "e", "f"};
  auto times = [&] {
    return times_of(rows, quiet, names, [](size_t) { return 1.05 * usual_contents; });
  };
  ASSERT_TRUE(needs_noise(times()->kinds));
  for (size_t i = 0; needs_noise(times()->kinds); ++i) {
    ASSERT_LT(i, 4u);
    add(0, (25 + 0.1 * static_cast<double>(i % 2)) * 1e-6, 0);
  }
  auto paid = pay_slowest(times()->kinds);
  EXPECT_TRUE(paid.in_doubt || paid.slowest);
  EXPECT_LT(paid.speedup.low, 0.9);
}

TEST(is_longer, looks_at_either_side_beside_rows_with_the_tasks_own_contents) {
  auto rows = rows_of([](unsigned, unsigned calls) { return row(calls, 50e-6); });
  row_pair x{1, row(50, 50e-6), row(50, 50e-6)};
  EXPECT_FALSE(is_longer(x, {}));
  EXPECT_FALSE(is_longer(x, rows.pairs));
  auto again = x;
  x.reference.done *= 1.5;
  EXPECT_TRUE(is_longer(x, rows.pairs));
  again.candidate.done *= 1.5;
  EXPECT_TRUE(is_longer(again, rows.pairs));
  keep_shorter(x, again);
  EXPECT_FALSE(is_longer(x, rows.pairs));
}

TEST(spread_of, is_nothing_for_a_copy_and_grows_with_the_difference) {
  clocked_times times;
  times.intercept = fixed;
  times.line.error = 20e-6;
  auto copy = rows_of([](unsigned, unsigned) { return row(51, 50e-6); });
  auto twice = rows_of([](unsigned, unsigned) { return row(51, 25e-6); });
  EXPECT_LT(spread_of(times, copy.pairs), 0.002);
  EXPECT_NEAR(spread_of(times, twice.pairs), 20e-6 * (1 / 1.275e-3 - 1 / 2.6e-3), 0.002);
}

} // namespace clocked_rows_test

// Which rows count of a candidate that fails behind the gate when it suits it.

#include <vector>

#include <gtest/gtest.h>

#include "gpu/referee/device/pair_taking.hpp"
#include "gpu/referee/row_arithmetic.hpp"

using namespace kernelmill;

namespace pair_taking_test {

row_times row(double call) {
  row_times x;
  x.calls = 50;
  x.done = 50 * call;
  return x;
}

made_pair made(double reference, double candidate, bool gate_held = true) {
  return {{1, row(reference), row(candidate)}, gate_held};
}

// Pairs with the task's own contents: 2 us a call of either.
const std::vector<row_pair> own(6, row_pair{0, row(2e-6), row(2e-6)});

struct taken {
  pair_outcome outcome;
  row_pair rows;
  size_t count = 0;
};

taken take(pair_taking& x, size_t kind, const std::vector<made_pair>& pairs) {
  taken result{};
  auto make = [&]() -> std::optional<made_pair> {
    if (result.count == pairs.size()) return std::nullopt;
    return pairs[result.count++];
  };
  result.outcome = x.take(kind, own, make, result.rows);
  return result;
}

TEST(pair_taking, a_pair_that_is_not_longer_counts_at_once) {
  pair_taking x;
  auto found = take(x, 1, {made(2e-6, 2e-6), made(1e-6, 1e-6)});
  EXPECT_EQ(found.outcome, pair_outcome::counts);
  EXPECT_EQ(found.count, 1u);
}

TEST(pair_taking, a_pair_of_which_the_gate_failed_is_taken_again_and_nothing_of_it_counts) {
  pair_taking x;
  auto found = take(x, 1, {made(2e-6, 1e-6, false), made(2e-6, 2e-6)});
  EXPECT_EQ(found.outcome, pair_outcome::counts);
  EXPECT_EQ(found.count, 2u);
  EXPECT_EQ(found.rows.candidate.done, row(2e-6).done);
}

TEST(pair_taking, no_row_of_a_failed_gate_is_kept_for_being_shorter) {
  pair_taking x; // right and slow; then wrong and fast; then right and slow again
  auto found = take(x, 1,
                    {made(2e-6, 6e-6), made(2e-6, 1e-6, false), made(2e-6, 6e-6), made(2e-6, 6e-6),
                     made(2e-6, 6e-6)});
  EXPECT_EQ(found.outcome, pair_outcome::counts);
  EXPECT_EQ(found.rows.candidate.done, row(6e-6).done);
}

TEST(pair_taking, of_longer_pairs_the_shorter_rows_count) {
  pair_taking x;
  auto found = take(x, 1, {made(9e-6, 2e-6), made(2e-6, 8e-6), made(3e-6, 9e-6)});
  EXPECT_EQ(found.outcome, pair_outcome::counts);
  EXPECT_EQ(found.rows.reference.done, row(2e-6).done);
  EXPECT_EQ(found.rows.candidate.done, row(2e-6).done);
  EXPECT_EQ(take(x, 0, {made(2e-6, 9e-6)}).count, 1u); // the task's own has many
}

TEST(pair_taking, failures_of_all_pairs_lose_the_gate) {
  pair_taking x;
  EXPECT_EQ(take(x, 1, {made(2e-6, 2e-6, false), made(2e-6, 2e-6)}).outcome, pair_outcome::counts);
  EXPECT_EQ(take(x, 0, {made(2e-6, 2e-6, false), made(2e-6, 2e-6)}).outcome, pair_outcome::counts);
  auto found = take(x, 2, {made(2e-6, 2e-6, false), made(2e-6, 2e-6)});
  EXPECT_EQ(found.outcome, pair_outcome::gate_lost);
  EXPECT_EQ(found.count, 1u);
}

TEST(pair_taking, failures_of_other_rows_count_as_well) {
  pair_taking x;
  EXPECT_FALSE(x.fails());
  EXPECT_FALSE(x.fails());
  EXPECT_TRUE(x.fails()) << "as of pairs";
}

// -- a baseline whose launches fill the queue ----------------------------------------------------

TEST(queue_room, a_row_that_lost_its_core_once_is_made_again_as_it_was) {
  queue_room x;
  std::vector<unsigned> made_of;
  EXPECT_TRUE(x.fit(200, true, [&](unsigned calls) {
    made_of.push_back(calls);
    return made_of.size() == 2;
  }));
  EXPECT_EQ(made_of, (std::vector{200u, 200u}));
  EXPECT_EQ(x.of(240), 240u);
}

TEST(queue_room, where_nothing_waits_later_rows_have_fewer_calls) {
  queue_room x;
  int made_rows = 0;
  EXPECT_FALSE(x.fit(200, true, [&](unsigned) { return ++made_rows < 0; }));
  EXPECT_EQ(made_rows, gate_tries);
  EXPECT_EQ(x.of(240), 114u) << "nine sixteenths were too many";
}

// The gate is lost after so many failures. A fast candidate has rows of many calls, and the
// baseline's launches of as many may be far too many.
TEST(queue_room, before_the_gate_is_lost_rows_of_twenty_launches_a_call_fit) {
  queue_room x;
  int failures = 0;
  auto waits = [](unsigned calls) { return calls * 20 <= 1000; };
  while (!x.fit(long_calls(x.of(240), 239), true, waits)) ++failures;
  EXPECT_LT(failures, pair_taking::gate_trials);
}

TEST(queue_room, a_candidate_shortened_rows_only_where_they_have_fewer_calls) {
  queue_room x;
  EXPECT_TRUE(x.fit(200, true, [](unsigned calls) { return calls < 200; }));
  EXPECT_FALSE(x.is_shortened()) << "by the baseline";
  x.shorten(37);
  EXPECT_EQ(x.of(240), 37u);
  EXPECT_FALSE(x.is_shortened());
  x.shorten(37);
  EXPECT_EQ(x.of(240), 9u);
  EXPECT_TRUE(x.is_shortened());
}

TEST(queue_room, a_short_row_says_nothing_of_long_ones_and_one_call_is_tried_as_often) {
  queue_room x;
  EXPECT_TRUE(x.fit(60, false, [](unsigned calls) { return calls < 60; }));
  EXPECT_EQ(x.of(240), 240u);
  int made_rows = 0;
  EXPECT_TRUE(x.fit(1, false, [&](unsigned) { return ++made_rows == gate_tries; }));
  EXPECT_EQ(made_rows, gate_tries);
  EXPECT_TRUE(x.fit(4, true, [](unsigned calls) { return calls < 4; }));
  EXPECT_EQ(x.of(240), 4u) << "a line has two lengths";
}

// Where only long rows had fewer calls, no two lengths would tell a line, and there would be no
// time of anybody.
TEST(queue_room, the_lengths_that_a_queue_holds_tell_a_line) {
  for (unsigned launches = 1; launches <= 20; ++launches) {
    for (unsigned sets : {240u, 208u, 172u, 104u, 81u}) {
      queue_room x;
      std::vector<row_times> rows;
      size_t lost = 0;
      for (uint64_t i = 0; i < 12; ++i) {
        auto waits = [&](unsigned calls) {
          bool held = calls * launches <= 1024;
          row_times one;
          one.calls = calls;
          one.done = 100e-6 + calls * 8e-6;
          if (held) rows.push_back(one);
          return held;
        };
        lost += x.fit(long_calls(x.of(sets), i * 7919), true, waits) ? 0 : 1;
        x.fit(short_calls(x.of(sets)), false, waits);
      }
      if (lost >= size_t{pair_taking::gate_trials}) continue; // the gate is lost
      auto line = fit_line(rows);
      ASSERT_TRUE(line) << launches << " launches, " << sets << " sets";
      EXPECT_NEAR(line->call, 8e-6, 1e-9);
    }
  }
}

// -- calls apart ---------------------------------------------------------------------------------

// Takes pairs of calls apart; `made` has each that was asked for.
pair_outcome take_apart(pair_taking& x, const std::vector<bool>& gates,
                        std::vector<fences>& made_of, bool is_gated = true) {
  size_t next = 0;
  auto make = [&](fences between) -> std::optional<made_pair> {
    if (next == gates.size()) return std::nullopt;
    made_of.push_back(between);
    return made(2e-6, 2e-6, gates[next++]);
  };
  row_pair into;
  return x.take_apart(is_gated, make, into);
}

constexpr auto all = fences::all_calls;
constexpr auto half = fences::half_calls;

TEST(pair_taking, calls_apart_that_filled_the_queue_are_half_as_many_from_then_on) {
  pair_taking x;
  std::vector<fences> made_of;
  EXPECT_EQ(take_apart(x, {true}, made_of), pair_outcome::counts);
  EXPECT_EQ(take_apart(x, {false, true}, made_of), pair_outcome::counts);
  EXPECT_EQ(take_apart(x, {true}, made_of), pair_outcome::counts);
  EXPECT_EQ(take_apart(x, {true}, made_of, false), pair_outcome::counts);
  EXPECT_EQ(made_of, (std::vector{all, all, half, half, all})) << "the last without a gate";
  EXPECT_FALSE(x.fails());
  EXPECT_FALSE(x.fails()) << "the first is no fault";
}

// If too few rows were left, the candidate would not be charged.
TEST(pair_taking, no_row_of_calls_apart_is_left_out_because_its_gate_failed) {
  pair_taking x;
  std::vector<fences> made_of;
  EXPECT_EQ(take_apart(x, {false, false, false, true}, made_of), pair_outcome::counts);
  EXPECT_EQ(made_of, (std::vector{all, half, half, half}));
  EXPECT_EQ(take_apart(x, {false, true}, made_of), pair_outcome::gate_lost);
}

TEST(pair_taking, ends_with_the_candidate) {
  pair_taking x;
  EXPECT_EQ(take(x, 1, {}).outcome, pair_outcome::ended);
}

// -- who waits for a core ------------------------------------------------------------------------

made_pair waiting(double reference, double candidate) {
  auto x = made(2e-6, 2e-6);
  x.rows.reference.waited = reference;
  x.rows.candidate.waited = candidate;
  x.rows.reference.done += reference;
  x.rows.candidate.done += candidate;
  return x;
}

constexpr double slice = 3.6e-3; // of the scheduler's time, as rows beside compilers lost it

struct kept {
  std::optional<made_pair> rows;
  bool disturbed = false;
  size_t count = 0;
};

kept take_undisturbed(pairs_that_wait& x, const std::vector<made_pair>& pairs,
                      bool expired = false) {
  kept result;
  auto make = [&]() -> std::optional<made_pair> {
    if (result.count == pairs.size()) return std::nullopt;
    return pairs[result.count++];
  };
  result.rows = x.take(
      make, 10e-6, [&] { return expired; }, result.disturbed);
  return result;
}

TEST(pairs_that_wait, a_row_that_lost_its_core_is_taken_again) {
  pairs_that_wait x;
  auto found = take_undisturbed(x, {waiting(0, slice), waiting(slice, 0), waiting(0, 0)});
  EXPECT_EQ(found.count, 3u);
  EXPECT_FALSE(found.disturbed);
  EXPECT_EQ(found.rows->rows.candidate.done, row(2e-6).done);
  EXPECT_EQ(x.taken_again(), 2u);
  EXPECT_EQ(x.baseline_waited(), 1u);
}

TEST(pairs_that_wait, being_woken_is_no_loss) {
  pairs_that_wait x;
  EXPECT_EQ(take_undisturbed(x, {waiting(25e-6, 25e-6), waiting(0, 0)}).count, 1u);
}

TEST(pairs_that_wait, a_candidate_that_waits_by_itself_is_not_rid_of_its_rows) {
  pairs_that_wait x;
  size_t again = 0;
  for (int i = 0; i < 40; ++i)
    again += take_undisturbed(x, std::vector(8, waiting(0, slice))).count - 1;
  EXPECT_EQ(again, 3u);
  EXPECT_FALSE(take_undisturbed(x, {waiting(0, slice)}).disturbed); // it counts as it is
}

TEST(pairs_that_wait, where_all_are_disturbed_the_last_says_so) {
  pairs_that_wait x;
  auto found = take_undisturbed(x, std::vector(8, waiting(slice, slice)));
  EXPECT_EQ(found.count, size_t{pairs_that_wait::most_taken});
  EXPECT_TRUE(found.disturbed);
  EXPECT_TRUE(take_undisturbed(x, {waiting(slice, 0)}, true).disturbed);
  EXPECT_FALSE(take_undisturbed(x, {}).rows);
}

TEST(pairs_that_wait, where_the_gate_failed_nothing_is_excused) {
  pairs_that_wait x;
  auto failed = waiting(slice, slice);
  failed.gate_held = false;
  EXPECT_EQ(take_undisturbed(x, {failed, waiting(0, 0)}).count, 1u);
}

} // namespace pair_taking_test

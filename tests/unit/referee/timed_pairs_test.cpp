// The pairs that a record keeps: those that its interval was made of, and not too many.

#include "gpu/referee/timed_pairs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/result_words.hpp"
#include "messages/message.hpp"

namespace kernelmill::timed_pairs_test {

using testing::ElementsAre;

timing::batch_pair pair_of(timing::batch_form form, size_t pattern, double candidate,
                           double baseline) {
  timing::batch_pair x;
  x.order = {form, {pattern}};
  x.candidate = {2, 0, 2 * candidate, 0, false};
  x.baseline = {2, 0, 2 * baseline, 2 * baseline, false};
  return x;
}

std::vector<timing::batch_pair> made_pairs() {
  using timing::batch_form;
  return {
      pair_of(batch_form::nominal, 0, 1e-3, 2e-3), pair_of(batch_form::pattern, 3, 4e-3, 2e-3),
      pair_of(batch_form::single, 0, 9e-3, 9e-3),  pair_of(batch_form::mixed, 2, 8e-3, 8e-3),
      pair_of(batch_form::pattern, 2, 7e-3, 7e-3), pair_of(batch_form::nominal, 0, 1.5e-3, 3e-3)};
}

std::vector<double> candidates_of(const std::vector<both_seconds>& pairs) {
  std::vector<double> result;
  for (const auto& x : pairs) result.push_back(x.candidate);
  return result;
}

timing::calibration nothing_known() {
  timing::calibration result;
  result.fills = {0};
  return result;
}

TEST(timed_pairs, are_those_of_the_own_inputs_in_order) {
  auto pairs = deciding_pairs(made_pairs(), {}, nothing_known());
  EXPECT_THAT(candidates_of(pairs), ElementsAre(1e-3, 1.5e-3));
  EXPECT_DOUBLE_EQ(pairs[1].reference, 3e-3);
}

TEST(timed_pairs, are_those_of_the_slow_pattern_where_it_is_paid_alone) {
  timing::paid_result paid;
  paid.slow_pattern = 3;
  EXPECT_THAT(candidates_of(deciding_pairs(made_pairs(), paid, nothing_known())),
              ElementsAre(4e-3));
}

TEST(timed_pairs, are_thinned_evenly_and_keep_the_first) {
  EXPECT_THAT(evenly_thinned(3, 5), ElementsAre(0, 1, 2));
  EXPECT_THAT(evenly_thinned(10, 4), ElementsAre(0, 2, 5, 7));
  EXPECT_TRUE(evenly_thinned(0, 4).empty());
}

TEST(timed_pairs, of_a_record_are_at_most_256) {
  evaluation_record x;
  for (int i = 0; i < 1000; ++i) x.timing.pairs.push_back({i * 1e-3, 2 * i * 1e-3});
  auto answer = build<wire::EvaluateResult>(
      [&](wire::EvaluateResult::Builder out) { write_record(x, "n=1", out); });
  auto opened = answer.open();
  auto pairs = opened->getTiming().getPairs();
  ASSERT_EQ(pairs.size(), most_timed_pairs);
  EXPECT_FLOAT_EQ(pairs[0].getCandidateMs(), 0);
  EXPECT_FLOAT_EQ(pairs[255].getCandidateMs(), 996);
  EXPECT_FLOAT_EQ(pairs[255].getReferenceMs(), 1992);
}

} // namespace kernelmill::timed_pairs_test

#include "launch/judging/benching/bench_text.hpp"
#include "messages/base/json_value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/cli/terminal.hpp"

namespace kernelmill::benching {
namespace bench_text_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

bench_sample sample(double candidate_ms, double reference_ms) {
  double speedup = reference_ms / candidate_ms;
  return {candidate_ms, reference_ms, {speedup, speedup * 0.9, speedup * 1.1}, 10};
}

bench_row row(std::vector<bench_sample> samples) {
  bench_row result;
  result.name = "timed";
  result.shape = "rows=4 cols=8";
  result.samples = std::move(samples);
  result.outcome = "accepted";
  result.category = "success";
  result.bytes = 1e6;
  return result;
}

bench_row failed() {
  auto result = row({});
  result.outcome = "rejected";
  result.category = "wrong_result";
  result.reason = "correctness: y[0]: got 1, want 2";
  return result;
}

TEST(Interval, OfOneValueIsNone) {
  auto x = interval_of({0.5});
  EXPECT_EQ(x.estimate, 0.5);
  EXPECT_FALSE(x.low);
  EXPECT_FALSE(x.high);
}

TEST(Interval, OfSeveralHoldsTheirMiddleAndGrowsWithTheirSpread) {
  auto narrow = interval_of({1.00, 1.01, 0.99, 1.02, 0.98});
  auto wide = interval_of({1.0, 1.1, 0.9, 1.2, 0.8});
  EXPECT_NEAR(narrow.estimate, 1, 0.01);
  EXPECT_LT(*narrow.low, narrow.estimate);
  EXPECT_GT(*narrow.high, narrow.estimate);
  EXPECT_GT(*wide.high - *wide.low, *narrow.high - *narrow.low);
  // Student's t by hand: logarithms of five values, 2.776 times their standard error.
  EXPECT_NEAR(*narrow.high, 1.0198, 0.0005);
}

TEST(Row, OfOneEvaluationHasTheRefereesInterval) {
  auto x = row({sample(2, 4)});
  EXPECT_FALSE(x.candidate_ms().low);
  EXPECT_NEAR(*x.speedup().low, 1.8, 1e-9);
}

TEST(Row, OfSeveralHasThatOfTheEvaluations) {
  auto x = row({sample(2, 4), sample(2, 4.2)});
  EXPECT_NEAR(x.speedup().estimate, 2.05, 0.01);
  EXPECT_EQ(x.calls(), 20u);
}

TEST(Table, NamesUnitsAndReasons) {
  auto text = table_text({row({sample(0.002, 0.004)}), failed()}, 0);
  EXPECT_THAT(text, AllOf(HasSubstr("rows=4 cols=8 (timed)"), HasSubstr("2 us"),
                          HasSubstr("2 [1.8, 2.2]"), HasSubstr("GB/s"), HasSubstr("1 x 10"),
                          HasSubstr("wrong_result: correctness: y[0]: got 1, want 2")));
}

TEST(Table, SaysOnceThatARowWasNotTimed) {
  auto untimed = row({});
  untimed.category = "not_timed";
  untimed.reason = "not timed: a speedup from 0.34 to 2.73 says nothing (40 calls)";
  auto text = table_text({untimed}, 0);
  EXPECT_THAT(text,
              AllOf(HasSubstr("not_timed: a speedup from 0.34"), Not(HasSubstr("not timed"))));
}

TEST(Bars, AreAsLongAsTheTimesAndFitTheWidth) {
  auto text = bars_text({row({sample(1, 2)})}, 80);
  EXPECT_THAT(text, AllOf(HasSubstr("from 0 to 2 ms"), Not(HasSubstr("logarithmic"))));
  size_t candidate = 0, baseline = 0, line = 0;
  for (size_t at = 0; at < text.size(); ++line) {
    auto end = std::min(text.find('\n', at), text.size());
    auto one = text.substr(at, end - at);
    EXPECT_LE(cli::columns_of(one), 80u) << one;
    size_t blocks = 0;
    for (size_t k = 0; (k = one.find("█", k)) != one.npos; k += 3) ++blocks;
    if (one.find("candidate") != one.npos) candidate = blocks;
    if (one.find("  baseline") != one.npos) baseline = blocks;
    at = end + 1;
  }
  EXPECT_GT(candidate, 0u);
  EXPECT_NEAR(static_cast<double>(baseline), 2.0 * static_cast<double>(candidate), 1);
}

TEST(Bars, OfTimesFarApartAreOnALogarithmicAxis) {
  auto text = bars_text({row({sample(0.001, 0.002)}), row({sample(50, 100)})}, 100);
  EXPECT_THAT(text, AllOf(HasSubstr("logarithmic"), HasSubstr("1 us"), HasSubstr("100 ms")));
}

TEST(Bars, ShadeTheInterval) {
  auto text = bars_text({row({sample(1, 2), sample(1.3, 2), sample(0.8, 2)})}, 100);
  EXPECT_THAT(text, HasSubstr("▒"));
}

TEST(Bars, OfNothingTimedAreNone) {
  EXPECT_EQ(bars_text({failed()}, 80), "");
  EXPECT_EQ(bars_text({}, 80), "");
}

TEST(Json, OfARowHasTimesOrAReason) {
  auto good = row_json(row({sample(2, 4), sample(2, 4)}));
  EXPECT_EQ(good["timed"], true);
  EXPECT_EQ(good["evaluations"], 2);
  EXPECT_EQ(good["calls"], 20);
  EXPECT_NEAR(good["candidate_ms"]["estimate"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(good["candidate_gb_per_s"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(good["samples"].size(), 2u);
  auto bad = row_json(failed());
  EXPECT_EQ(bad["timed"], false);
  EXPECT_TRUE(bad["speedup"].is_null());
  EXPECT_EQ(bad["category"], "wrong_result");
}

TEST(FewText, SaysOfOneAndTwoEvaluationsThatTheyAreTooFew) {
  EXPECT_THAT(few_text({row({sample(2, 4)})}, 1), HasSubstr("one evaluation is too few"));
  EXPECT_THAT(few_text({row({sample(2, 4), sample(2, 4)})}, 2), HasSubstr("two evaluations are"));
  EXPECT_EQ(few_text({row({sample(2, 4), sample(2, 4), sample(2, 4)})}, 3), "");
  EXPECT_EQ(few_text({failed()}, 2), "") << "there are no times";
}

TEST(BarsText, TheAxisDoesNotEndWhereAnIntervalOfTwoDoes) {
  auto text = bars_text({row({sample(0.01, 2), sample(4, 2)})}, 100);
  EXPECT_THAT(text, HasSubstr(" to 2 ms")) << text;
}

} // namespace bench_text_test
} // namespace kernelmill::benching

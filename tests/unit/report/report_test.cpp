#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/analysis/report/report.hpp"
#include "launch/cli/output.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::reporting {

namespace report_test {

using testing::HasSubstr;
using testing::Not;

sample of(const std::string& task, bool compiled, bool correct,
          std::optional<speedup_interval> speedup = {}, std::optional<uint32_t> turns = {}) {
  sample x;
  x.task = task;
  x.compiled = compiled;
  x.correct = correct;
  x.speedup = speedup;
  x.turns_to_first_correct = turns;
  return x;
}

const std::string relu = "kernelbench/level1/19_ReLU", gemm = "kernelbench/level1/1_gemm",
                  fused = "kernelbench/level2/3_fused";

/// Level 1: relu right twice (1.2 but perhaps slower, and 4), gemm wrong and not compiled; level
/// 2: one right and slower; and one lost of each kind.
sample_set some() {
  sample_set x;
  x.samples = {of(relu, true, true, speedup_interval{1.2, 0.9, 1.5}, 1),
               of(relu, true, true, speedup_interval{4, 3.5, 4.5}, 3), of(gemm, true, false),
               of(gemm, false, false), of(fused, true, true, speedup_interval{0.5, 0.4, 0.6}, 2)};
  x.without = {{fused, left_out::reason::infrastructure}, {relu, left_out::reason::open}};
  return x;
}

TEST(task_place, is_read_from_the_id) {
  auto at = place_of(relu);
  EXPECT_EQ(at.group, "level 1");
  EXPECT_EQ(at.level, 1u);
  EXPECT_EQ(at.problem, 19u);
  EXPECT_EQ(place_of("kernelbench/level3/7").problem, 7u);
}

TEST(task_place, of_other_tasks_is_the_first_part_of_the_id) {
  for (const auto* id : {"native/row_sum", "kernelbench/extra/1_x", "kernelbench/levelx/1_x"})
    EXPECT_FALSE(place_of(id).level) << id;
  EXPECT_EQ(place_of("native/row_sum").group, "native");
  EXPECT_EQ(place_of("single").group, "single");
  EXPECT_FALSE(place_of("kernelbench/level1/19x_ReLU").problem);
}

TEST(report, of_levels_agrees_with_counting_by_hand) {
  auto x = make_report(some(), {{0, 1, 2}, {1, 2, 5}});
  ASSERT_EQ(x.groups.size(), 2u);
  const auto& one = x.groups[0];
  EXPECT_EQ(one.group, "level 1");
  EXPECT_EQ(one.problems, 2u);
  EXPECT_EQ(one.samples, 4u);
  EXPECT_EQ(one.compiled, 3u);
  EXPECT_EQ(one.correct, 2u);
  EXPECT_EQ(one.open, 1u);
  EXPECT_EQ(one.infrastructure, 0u);
  EXPECT_DOUBLE_EQ(*one.fast[0].share, 0.5);
  EXPECT_EQ(one.fast[1].count, 2u);
  EXPECT_EQ(one.fast[1].count_by_low, 1u);
  EXPECT_EQ(one.fast_1_by_low, 1u);
  EXPECT_EQ(one.fast[2].count, 1u);
  EXPECT_DOUBLE_EQ(*one.pass[0].value, 0.5); // 1 of relu, 0 of gemm
  EXPECT_DOUBLE_EQ(*one.pass[1].value, 0.5);
  EXPECT_FALSE(one.pass[2].value); // no problem has five samples
  EXPECT_EQ(one.pass[2].problems, 0u);
  EXPECT_NEAR(*one.geomean_speedup.value, std::sqrt(4.8), 1e-12);
  EXPECT_DOUBLE_EQ(*one.turns_mean.value, 2);
}

TEST(report, in_all_adds_the_levels_up) {
  auto x = make_report(some(), {{0, 1}, {1}});
  EXPECT_EQ(x.all.problems, 3u);
  EXPECT_EQ(x.all.samples, 5u);
  EXPECT_EQ(x.all.correct, 3u);
  EXPECT_EQ(x.all.infrastructure, 1u);
  EXPECT_EQ(x.all.timed, 3u);
  EXPECT_NEAR(*x.all.geomean_speedup.value, std::cbrt(2.4), 1e-12);
  EXPECT_EQ(x.all.geomean_speedup_of_faster.n, 2u);
  EXPECT_NEAR(*x.all.pass[0].value, 2.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(*x.all.turns_median.value, 2);
}

TEST(report, counts_what_could_not_be_timed_apart_from_what_was_not_asked_for) {
  auto samples = some();
  for (const char* category : {"not_timed", "success"}) {
    samples.samples.push_back(of(relu, true, true));
    samples.samples.back().category = category;
  }
  auto x = make_report(samples, {{0, 1}, {1}});
  EXPECT_EQ(x.all.correct - x.all.timed, 2u);
  EXPECT_EQ(x.all.not_timed, 1u);
  EXPECT_EQ(to_json(x)["all"]["not_timed"], 1);
}

TEST(report, text_says_of_how_many_each_number_is) {
  auto text = to_text(make_report(some(), {{0, 1}, {1, 5}}));
  EXPECT_THAT(text, HasSubstr("0.400 (2/5)")); // fast_1 in all
  EXPECT_THAT(text, HasSubstr("- (n 0)"));     // pass@5
  EXPECT_THAT(text, HasSubstr("2.19 (n 2)"));  // geometric mean of level 1
}

TEST(report, has_in_csv_a_column_for_each_number) {
  cli::invocation in;
  in.values["--output"] = {"csv"};
  ASSERT_TRUE(cli::choose_output({}, in));
  (void)to_text(make_report(some(), {{0, 1}, {1, 5}}));
  auto tables = cli::taken_tables("report");
  cli::pass_output_through();
  ASSERT_TRUE(tables);
  EXPECT_THAT(*tables, HasSubstr("compiled,compiled_count,correct,correct_count,timed,fast_0,"));
  EXPECT_THAT(*tables, HasSubstr(",0.4,2,")); // fast_1 in all, and of how many
  EXPECT_THAT(*tables, Not(HasSubstr("("))) << "no cell of two numbers";
}

TEST(report, without_any_interval_claims_nothing_of_lower_bounds) {
  sample_set x;
  x.samples = {of(relu, true, true, speedup_interval{2, {}, {}})};
  x.knows_left_out = false;
  auto made = make_report(x, {{1}, {1}});
  EXPECT_EQ(made.all.with_interval, 0u);
  EXPECT_THAT(to_text(made), Not(HasSubstr("0.000")));
  EXPECT_TRUE(to_json(made)["all"]["left_out"].is_null());
}

TEST(report, of_nothing_has_no_rates) {
  auto x = make_report({}, {{0, 1}, {1}});
  EXPECT_TRUE(x.groups.empty());
  auto document = to_json(x);
  EXPECT_TRUE(document["all"]["correct"]["share"].is_null());
  EXPECT_TRUE(document["all"]["geomean_speedup"].is_null());
  EXPECT_THAT(to_text(x), HasSubstr("all"));
}

TEST(report, has_a_row_for_each_verb_or_family) {
  auto from = some();
  from.kinds = {{relu, {"optimize", "activation"}}, {gemm, {"debug", "matmul"}}};
  auto verbs = make_report(from, {{1}, {1}}, grouping::verb);
  ASSERT_EQ(verbs.groups.size(), 3u);
  EXPECT_EQ(verbs.groups[0].group, "debug");
  EXPECT_EQ(verbs.groups[0].samples, 2u);
  EXPECT_EQ(verbs.groups[1].group, "optimize");
  EXPECT_EQ(verbs.groups[1].correct, 2u);
  EXPECT_EQ(verbs.groups[1].open, 1u);
  EXPECT_EQ(verbs.groups[2].group, "unknown"); // no turn says what it is
  EXPECT_EQ(verbs.all.samples, make_report(from, {{1}, {1}}).all.samples);
  EXPECT_THAT(to_text(verbs), HasSubstr("VERB"));
  EXPECT_EQ(to_json(verbs)["group_by"], "verb");
  EXPECT_EQ(make_report(from, {{1}, {1}}, grouping::family).groups[0].group, "activation");
}

} // namespace report_test

} // namespace kernelmill::reporting

// What results at several shapes of a problem say together.

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/torch/torch_shapes.hpp"
#include "messages/shapes.hpp"

using namespace kernelmill;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace torch_shapes_test {

const torch_variant wide{"wide", {{"dim", "8192"}}, false, true};
const torch_variant odd{"odd_secret", {{"dim", "1000"}}, true, true};

const judged_shape base_at{nullptr, 0, true};
const judged_shape wide_at{&wide, 0, true};
const judged_shape hidden_at{&odd, 1, true};

shape_result right(const judged_shape& at, double speedup, double spread = 0.1) {
  shape_result x{at, {}, "float32[4, 1000]", {{{"name", "trial 1"}, {"pass", true}}}};
  x.record.correct = x.record.found_right = true;
  x.record.case_count = 10;
  auto& timing = x.record.timing;
  timing.measured = true;
  timing.candidate_seconds = 1e-3;
  timing.reference_seconds = 1e-3 * speedup;
  timing.speedup = {speedup, speedup * std::exp(-spread), speedup * std::exp(spread)};
  timing.samples = 5;
  timing.pairs = {{1e-3, 1e-3 * speedup}};
  return x;
}

shape_result wrong(const judged_shape& at, const std::string& category = "wrong_result") {
  auto x = right(at, 9);
  x.record.correct = false;
  x.record.fault = {fault_class::candidate, category, "it says [4, 1000]", "look"};
  x.record.output = "dim is 1000";
  return x;
}

TEST(torch_shapes_together, visible_ones_come_before_hidden_ones_which_have_numbers) {
  torch_problem x;
  x.variants = {odd, wide, {"more", {{"dim", "1"}}, true, false}};
  std::vector<std::string> labels;
  std::vector<bool> timed;
  for (const auto& one : shapes_of(x, true)) {
    labels.push_back(one.label());
    timed.push_back(one.timed);
  }
  EXPECT_THAT(labels, ElementsAre("shape base", "shape wide", "hidden shape 1", "hidden shape 2"));
  EXPECT_THAT(timed, ElementsAre(true, true, true, false));
  for (const auto& one : shapes_of(x, false)) EXPECT_FALSE(one.timed);
}

TEST(torch_shapes_together, the_geometric_mean_has_the_interval_of_independent_shapes) {
  auto x = together({right(base_at, 4), right(wide_at, 1), right(hidden_at, 2)}, 3).timing;
  ASSERT_TRUE(x.measured);
  EXPECT_NEAR(x.speedup.estimate, 2, 1e-9);
  EXPECT_NEAR(std::log(x.speedup.estimate / x.speedup.low), 0.1 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(std::log(x.speedup.high / x.speedup.estimate), 0.1 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(x.reference_seconds / x.candidate_seconds, 2, 1e-9);
  EXPECT_EQ(x.samples, 15u);
  EXPECT_TRUE(x.pairs.empty()) << "each pair is of one shape";
  std::vector<std::string> names;
  for (const auto& one : x.kinds) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("shape base", "shape wide", "hidden shape 1"));
  EXPECT_THAT(x.note, HasSubstr("shape wide 1.000 [0.905, 1.105], hidden shape 1 2.000"));
  EXPECT_EQ(x.roofline_seconds, 0) << "one of them has none";
}

TEST(torch_shapes_together, an_interval_that_says_nothing_leaves_none_that_does) {
  auto nothing = right(wide_at, 1);
  nothing.record.timing.speedup.low = 0;
  nothing.record.timing.speedup.high = INFINITY;
  auto x = together({right(base_at, 4), nothing}, 2).timing.speedup;
  EXPECT_EQ(x.low, 0);
  EXPECT_EQ(x.high, INFINITY);
}

TEST(torch_shapes_together, shapes_that_are_not_timed_change_no_time) {
  judged_shape untimed{&wide, 0, false};
  auto x = together({right(base_at, 4), right(untimed, 1)}, 2);
  EXPECT_EQ(x.timing.speedup.estimate, 4);
  EXPECT_TRUE(x.timing.kinds.empty());
  EXPECT_EQ(x.timing.pairs.size(), 1u);
  EXPECT_EQ(x.case_count, 20u);
}

TEST(torch_shapes_together,
     one_without_a_time_leaves_all_without_and_a_candidates_doing_outweighs) {
  auto all = std::vector{right(base_at, 4), right(wide_at, 1), right(hidden_at, 2)};
  for (size_t i : {1, 2}) all[i].record.timing.measured = false;
  all[1].record.timing.why_not = untimed::machine;
  all[1].record.timing.note = "too few";
  all[2].record.timing.why_not = untimed::machine;
  auto x = together(all, 3).timing;
  EXPECT_FALSE(x.measured);
  EXPECT_EQ(x.why_not, untimed::machine);
  EXPECT_EQ(x.note, "at shape wide: too few");
  all[2].record.timing.why_not = untimed::candidate;
  EXPECT_EQ(together(all, 3).timing.why_not, untimed::candidate);
}

TEST(torch_shapes_together, a_failure_at_a_named_shape_is_told_in_full_and_pays_no_time) {
  auto before = right(base_at, 4);
  before.record.sealed = true;
  before.record.findings = {{"bits_vary", severity::warning, "seen in a hidden trial"}};
  auto x = together({before, wrong(wide_at, "runtime_error")}, 3);
  EXPECT_FALSE(x.correct);
  EXPECT_EQ(x.fault.message, "at shape wide (float32[4, 1000]): it says [4, 1000]");
  EXPECT_TRUE(is_at_another_shape(x.fault.message));
  EXPECT_FALSE(x.sealed);
  EXPECT_TRUE(x.findings.empty()) << "what was seen behind the seal of another process";
  EXPECT_EQ(x.output, "dim is 1000");
  EXPECT_FALSE(x.timing.measured);
}

TEST(torch_shapes_together, a_failure_at_a_hidden_shape_says_nothing_of_it) {
  auto x = together({right(base_at, 4), wrong(hidden_at)}, 2);
  EXPECT_EQ(x.fault.category, "wrong_result");
  EXPECT_THAT(x.fault.message,
              AllOf(HasSubstr("at hidden shape 1"), Not(HasSubstr("1000")), Not(HasSubstr("odd"))));
  EXPECT_TRUE(x.sealed);
  EXPECT_TRUE(x.output.empty());
}

TEST(torch_shapes_together, a_fault_that_is_none_of_the_candidates_names_the_variant_for_users) {
  auto lost = wrong(hidden_at);
  lost.record.fault.cls = fault_class::infrastructure;
  auto x = together({right(base_at, 4), lost}, 2);
  EXPECT_EQ(x.fault.cls, fault_class::infrastructure);
  EXPECT_EQ(x.fault.message, "at shape odd_secret: it says [4, 1000]");
}

TEST(torch_shapes_together, a_cheat_at_one_shape_is_one) {
  auto caught = right(wide_at, 4);
  caught.record.findings = {{"late_write", severity::critical, "outputs changed"}};
  EXPECT_FALSE(caught.is_right());
  auto x = together({right(base_at, 4), caught}, 3);
  ASSERT_EQ(x.findings.size(), 1u);
  EXPECT_EQ(x.findings[0].evidence, "at shape wide: outputs changed");
  EXPECT_FALSE(x.timing.measured);
}

TEST(torch_shapes_together, own_kernels_have_the_least_of_their_shares) {
  auto base = right(base_at, 4), other = right(wide_at, 4);
  base.record.counters = {{"kernel_share", 0.9, "share"}};
  other.record.counters = {{"kernel_share", 0.1, "share"}};
  EXPECT_EQ(together({base, other}, 2).counters[0].value, 0.1);
}

} // namespace torch_shapes_test

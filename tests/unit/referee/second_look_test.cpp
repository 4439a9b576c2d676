#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/second_look.hpp"

using namespace kernelmill;
using testing::HasSubstr;

namespace second_look_test {

evaluation_record right(std::vector<std::string> critical = {}) {
  evaluation_record x;
  x.correct = x.found_right = x.timing.measured = true;
  for (auto& rule : critical) x.findings.push_back({rule, severity::critical, "seen"});
  return x;
}

evaluation_record disturbed() {
  auto x = right();
  x.correct = x.timing.measured = false;
  x.fault = {fault_class::candidate, disturbance, "the baseline ended", {}};
  return x;
}

evaluation_record lost() {
  auto x = right();
  x.correct = x.timing.measured = false;
  x.fault = {fault_class::infrastructure, lost_spawner, "it has died", {}};
  return x;
}

bool is_accused(const evaluation_record& x) {
  return x.fault.cls != fault_class::none ||
         std::any_of(x.findings.begin(), x.findings.end(),
                     [](const finding& f) { return f.level == severity::critical; });
}

TEST(second_look, only_what_rests_on_timing_is_measured_again) {
  EXPECT_FALSE(wants_second_look(right()));
  for (const char* rule : {"background_work", "ran_while_stopped", "impossible_speed"})
    EXPECT_TRUE(wants_second_look(right({rule}))) << rule;
  EXPECT_TRUE(wants_second_look(disturbed()));
  EXPECT_FALSE(wants_second_look(right({"input_overwrite"})));
  EXPECT_FALSE(wants_second_look(right({"background_work", "late_write"})));
  auto wrong = right({"background_work"});
  wrong.fault = {fault_class::candidate, "wrong_result", "", {}};
  EXPECT_FALSE(wants_second_look(wrong));
}

TEST(second_look, the_same_rule_twice_holds) {
  EXPECT_TRUE(is_accused(confirmed(right({"impossible_speed"}), right({"impossible_speed"}))));
  EXPECT_EQ(confirmed(disturbed(), disturbed()).fault.category, disturbance);
}

TEST(second_look, what_is_not_found_again_leaves_the_second_measurement) {
  auto second = right();
  second.timing.candidate_seconds = 3;
  auto x = confirmed(right({"impossible_speed"}), second);
  EXPECT_FALSE(is_accused(x));
  EXPECT_TRUE(x.timing.measured);
  EXPECT_EQ(x.timing.candidate_seconds, 3);
  EXPECT_THAT(x.timing.note, HasSubstr("impossible_speed"));
  EXPECT_FALSE(is_accused(confirmed(disturbed(), right())));
}

TEST(second_look, no_candidate_is_paid_for_the_better_of_two_tries) {
  auto slow = right({"background_work"});
  slow.timing.speedup = {1.1, 1.0, 1.2};
  slow.findings.push_back({"depends_on_contents", severity::warning, "slow on some"});
  auto fast = right();
  fast.timing.speedup = {2.1, 2.0, 2.2};
  auto x = confirmed(slow, fast);
  EXPECT_FALSE(is_accused(x));
  EXPECT_EQ(x.timing.speedup.low, 1.0);
  ASSERT_EQ(x.findings.size(), 1u);
  EXPECT_EQ(x.findings[0].rule, "depends_on_contents");
  fast.findings.push_back({"background_work", severity::critical, "seen"});
  slow.findings.clear();
  EXPECT_EQ(confirmed(fast, slow).timing.speedup.low, 1.0);
}

TEST(second_look, a_measurement_that_its_finding_ended_counts_by_what_it_had_seen) {
  auto ended = right({"ran_while_stopped"});
  ended.timing.measured = false;
  ended.timing.until_ended = speedup_interval{1.2, 0.3, 4};
  auto fast = right();
  fast.timing.speedup = {2.1, 2.0, 2.2};
  auto x = confirmed(ended, fast);
  EXPECT_FALSE(is_accused(x));
  EXPECT_EQ(x.timing.speedup.low, 1.2); // by the middle: two blocks have a wide interval
  EXPECT_EQ(x.timing.speedup.estimate, 1.2);
  ended.timing.until_ended = speedup_interval{2.05, 1.0, 4};
  EXPECT_EQ(confirmed(ended, fast).timing.speedup.low, 2.0);
  ended.timing.until_ended.reset();
  EXPECT_EQ(confirmed(ended, fast).timing.speedup.low, 2.0);
}

TEST(second_look, a_candidate_that_was_lost_with_its_spawner_is_looked_at_again_and_not_accused) {
  EXPECT_TRUE(wants_second_look(lost()));
  EXPECT_FALSE(is_accused(confirmed(lost(), right())));
  EXPECT_EQ(confirmed(lost(), lost()).fault.cls, fault_class::infrastructure);
  EXPECT_EQ(confirmed(disturbed(), lost()).fault.cls, fault_class::infrastructure);
  EXPECT_NE(confirmed(lost(), disturbed()).fault.cls, fault_class::candidate);
}

TEST(second_look,
     a_candidate_that_met_contents_on_which_the_baseline_is_wrong_is_judged_on_others) {
  auto unlucky = right();
  unlucky.timing.measured = false;
  unlucky.fault = {fault_class::configuration, "bad_baseline", "it is wrong", {}};
  EXPECT_FALSE(wants_second_look(unlucky)); // on what is unknown
  unlucky.wrong_baseline.emplace();
  EXPECT_TRUE(wants_second_look(unlucky));
  EXPECT_FALSE(is_accused(confirmed(unlucky, right())));
  EXPECT_EQ(confirmed(unlucky, unlucky).fault.category, "bad_baseline");
}

TEST(second_look, what_is_certain_in_the_second_measurement_counts) {
  EXPECT_TRUE(is_accused(confirmed(right({"impossible_speed"}), right({"input_overwrite"}))));
}

TEST(second_look, two_doubts_of_different_kinds_accuse_no_candidate_and_pay_no_speed) {
  auto x = confirmed(right({"impossible_speed"}), right({"background_work"}));
  EXPECT_FALSE(is_accused(x));
  EXPECT_TRUE(x.correct);
  EXPECT_FALSE(x.timing.measured);
  EXPECT_THAT(x.timing.note, HasSubstr("not timed: background_work"));
}

TEST(second_look, a_finding_that_ended_the_evaluation_is_a_doubt_like_others) {
  auto ended = right({"background_work"});
  ended.correct = false;
  ended.fault = {fault_class::candidate, "integrity", "seen", {}};
  EXPECT_TRUE(wants_second_look(ended));
  auto x = doubted(ended);
  EXPECT_FALSE(is_accused(x));
  EXPECT_TRUE(x.correct);
}

TEST(second_look, a_disturbance_before_anything_was_found_right_is_no_pass) {
  auto early = disturbed();
  early.found_right = false;
  auto x = doubted(early);
  EXPECT_EQ(x.fault.category, disturbance);
  EXPECT_FALSE(x.correct);
}

TEST(second_look, there_is_no_second_look_where_there_is_no_time) {
  int looks = 0;
  double left = 10;
  auto judge = [&] {
    ++looks;
    left -= 6;
    return right({"impossible_speed"});
  };
  auto x = with_second_look(judge, [&] { return left; });
  EXPECT_EQ(looks, 1);
  EXPECT_FALSE(is_accused(x));
  EXPECT_FALSE(x.timing.measured);
  left = 100;
  EXPECT_TRUE(is_accused(with_second_look(judge, [&] { return left; })));
  EXPECT_EQ(looks, 3);
}

} // namespace second_look_test

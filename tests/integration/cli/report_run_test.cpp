#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace report_run_test {

using testing::HasSubstr;

TEST(report_of_a_run, agrees_with_what_show_says_of_its_episodes) {
  auto ran = kernelmill({"run", source_file("configs/quickstart.json"),
                         "tasks.ids=[\"native/row_sum\", \"native/gelu\"]", "tasks.group_size=2",
                         "tasks.max_turns=3", "evaluation.timing.half_width=0.1",
                         "profile.enabled=false", "run.dir=reported", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  auto shown = kernelmill({"show", "reported", "--json"}).document();
  auto x = kernelmill({"report", "reported", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto all = x.document()["all"];
  int accepted = 0, faster = 0, certainly = 0, lost = 0, turns = 0;
  for (const auto& e : shown["episodes"]) {
    lost += e["outcome"] == "infrastructure";
    turns += e["turns"].get<int>();
    accepted += e["outcome"] == "accepted";
    // A busy machine may leave no time for a single block.
    if (e["outcome"] != "accepted" || !e["best_speedup"].is_object()) continue;
    faster += e["best_speedup"]["estimate"] > 1;
    certainly += e["best_speedup"]["low"] > 1;
  }
  EXPECT_EQ(all["samples"], static_cast<int>(shown["episodes"].size()) - lost);
  EXPECT_EQ(all["correct"]["count"], accepted);
  EXPECT_EQ(all["fast_p"][1]["by_estimate"]["count"], faster);
  EXPECT_EQ(all["fast_1_by_lower_bound"]["count"], certainly);
  EXPECT_EQ(x.document()["groups"][0]["group"], "native");
  auto by_turn = kernelmill({"report", "reported", "--by", "turn", "--json"}).document();
  EXPECT_EQ(by_turn["all"]["samples"].get<int>() +
                by_turn["all"]["left_out"]["infrastructure"].get<int>(),
            turns);
  auto by_family = kernelmill({"report", "reported", "--group-by", "family", "--json"}).document();
  ASSERT_EQ(by_family["groups"].size(), 2u);
  EXPECT_EQ(by_family["groups"][0]["group"], "elementwise");
  EXPECT_EQ(by_family["groups"][1]["group"], "reduction");
  EXPECT_EQ(by_family["all"]["samples"], all["samples"]);
}

TEST(report_of_a_run, of_other_tasks_has_no_file_of_the_benchmarks_form) {
  ASSERT_EQ(
      kernelmill({"run", source_file("configs/quickstart.json"), "tasks.ids=[\"native/row_sum\"]",
                  "tasks.group_size=1", "tasks.max_turns=1", "evaluation.timing.enabled=false",
                  "profile.enabled=false", "run.dir=reported_other", "--json"})
          .code,
      0);
  auto x = kernelmill({"report", "reported_other", "--eval-results", "none.json"});
  EXPECT_EQ(x.code, 3) << x.err;
  EXPECT_THAT(x.err, HasSubstr("kernelbench/level1"));
}

} // namespace report_run_test

} // namespace kernelmill::test

#include "launch/learning/training/journal_summary.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace kernelmill::training {
namespace journal_summary_test {

rewarded_sample sample_of(double reward, bool correct, std::optional<double> speedup = {}) {
  return {reward, {correct, speedup}, {}};
}

TEST(measures_of, each_task_counts_alike_and_speedups_by_their_lower_bounds) {
  samples_by_task samples{
      {"a", {sample_of(0, false), sample_of(2.3, true, 2.0)}},
      {"b", {sample_of(0.3, true), sample_of(0, false), sample_of(0, false), sample_of(0, false)}}};
  std::map<std::string, interval> found;
  for (const auto& [key, value] : measures_of(samples, {1, 2}, {1, 2, 3})) found[key] = value;
  EXPECT_NEAR(found["reward"].value, (1.15 + 0.075) / 2, 1e-12);
  EXPECT_NEAR(found["pass@1"].value, (0.5 + 0.25) / 2, 1e-12);
  EXPECT_NEAR(found["pass@2"].value, (1 + 0.5) / 2, 1e-12);
  EXPECT_FALSE(found.contains("pass@3"));          // a has two samples
  EXPECT_NEAR(found["fast_1"].value, 0.25, 1e-12); // b's right answer was not timed
  EXPECT_EQ(found["fast_2"].value, 0);             // 2 is not faster than 2
  for (const auto& [key, x] : found) {
    EXPECT_LE(x.low, x.value) << key;
    EXPECT_GE(x.high, x.value) << key;
  }
  EXPECT_LT(found["reward"].low, found["reward"].high);
  EXPECT_TRUE(measures_of({}, {1}, {1}).empty());
}

TEST(summarize_journal, an_episode_is_its_best_turn_and_lost_turns_are_none) {
  auto folder = std::filesystem::path{testing::TempDir()} / "read_facts";
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "metrics.jsonl"}
      << R"({"kind":"turn","run":"r","task":"a","episode":"g0.e0","turn":0,"outcome":"rejected","reward":0.0,"kernel/correct":false})"
         "\n"
      << R"({"kind":"turn","run":"r","task":"a","episode":"g0.e0","turn":1,"outcome":"accepted","reward":1.5,"kernel/correct":true,"kernel/speedup":1.2})"
         "\n"
      << R"({"kind":"turn","run":"r","task":"a","episode":"g0.e1","turn":0,"outcome":"infrastructure","reward":null})"
         "\n"
      << R"({"kind":"group","step":0,"reward/mean":0.5,"reward/max":1.5,"kernel/correct_rate":0.5})"
         "\n"
      << R"({"kind":"group","step":1,"reward/mean":0.1,"reward/max":0.2,"kernel/correct_rate":0.0})"
         "\n{\"kind\":\"tu";
  std::ofstream{folder / "traces.jsonl"}
      << R"({"kind":"turn","prompt_messages":[{"role":"user","content":"q"},{"role":"assistant","content":"own"}],)"
         R"("eval_result":{"findings":[{"rule":"unchanged"},{"rule":"slows_baseline"}]}})"
         "\n"
      << R"({"kind":"turn","prompt_messages":[],"eval_result":{"findings":[{"rule":"unchanged"}]}})"
         "\n";
  auto summary = summarize_journal(folder.string(), true);
  ASSERT_TRUE(summary);
  ASSERT_EQ(summary->samples.at("a").size(), 1u);
  EXPECT_EQ(summary->samples.at("a")[0].turn, "r/g0.e0.t1");
  EXPECT_EQ(summary->turns, 3u);
  EXPECT_EQ(summary->lost, 1u);
  EXPECT_EQ(summary->groups, 2u);
  EXPECT_NEAR(summary->metrics.at("reward/mean"), 0.3, 1e-12);
  EXPECT_NEAR(summary->metrics.at("reward/max"), 1.5, 1e-12);
  EXPECT_EQ(summary->findings,
            (std::map<std::string, uint64_t>{{"slows_baseline", 1}, {"unchanged", 2}}));
  EXPECT_EQ(summary->prompts.front(), "q\n");
  journal_summary both;
  both.add(*summary);
  both.add(*summary);
  EXPECT_EQ(both.findings.at("unchanged"), 4u);
  EXPECT_NEAR(both.metrics.at("reward/mean"), 0.3, 1e-12);
}

} // namespace journal_summary_test
} // namespace kernelmill::training

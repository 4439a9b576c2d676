#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"
#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace report_command_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char* const run_name = "scored";
const std::string relu = "kernelbench/level1/19_ReLU", gemm = "kernelbench/level1/1_gemm",
                  fused = "kernelbench/level2/3_fused";

/// One turn of a story: how it ended and how fast it was.
struct told {
  wire::Outcome outcome;
  bool compiled = true;
  double speedup = 0; ///< 0: not timed
};

const told wrong{wire::Outcome::REJECTED};
const told broken{wire::Outcome::REJECTED, false};
const told lost{wire::Outcome::INFRASTRUCTURE, false};

told right(double speedup) {
  return {wire::Outcome::ACCEPTED, true, speedup};
}

struct place {
  std::string task;
  uint32_t group, member;
};

void set_episode(wire::EpisodeRef::Builder e, const place& at) {
  e.setRun(run_name);
  e.setTask(at.task);
  e.setGroup(at.group);
  e.setMember(at.member);
}

Message<wire::Record> turn_record(const place& at, uint32_t number, const told& x) {
  return build<wire::Record>([&](wire::Record::Builder b) {
    auto t = b.initTurn();
    set_episode(t.initEpisode(), at);
    t.setTurnId(turn_id({run_name, at.task, at.group, at.member}, number));
    t.setTurn(number);
    auto facts = t.initFacts();
    facts.setBackend("cpu");
    facts.initBuild().setCompiled(x.compiled);
    auto evaluation = facts.initEvaluation();
    evaluation.setDevice("a processor");
    if (x.speedup > 0) {
      auto timing = evaluation.initTiming();
      timing.setMeasured(true);
      timing.setCandidateMs(2);
      timing.setReferenceMs(2 * x.speedup);
      timing.setSamples(12);
      auto s = timing.initSpeedup();
      s.setEstimate(x.speedup);
      s.setLow(x.speedup * 0.9);
      s.setHigh(x.speedup * 1.1);
    }
    auto v = t.initVerdict();
    v.setOutcome(x.outcome);
    v.setCategory(x.outcome == wire::Outcome::ACCEPTED ? "success" : "wrong_result");
  });
}

Message<wire::Record> end_record(const place& at, wire::Outcome outcome, size_t turns) {
  return build<wire::Record>([&](wire::Record::Builder b) {
    auto r = b.initEpisode();
    set_episode(r.initEpisode(), at);
    r.setTurns(static_cast<uint32_t>(turns));
    r.setOutcome(outcome);
  });
}

void commit(store& to, const place& at, const std::vector<told>& turns, bool ended = true) {
  std::vector<Message<wire::Record>> records;
  auto outcome = wire::Outcome::REJECTED;
  for (const auto& x : turns) {
    records.push_back(turn_record(at, static_cast<uint32_t>(records.size()), x));
    if (x.outcome == wire::Outcome::INFRASTRUCTURE || outcome == wire::Outcome::REJECTED)
      outcome = x.outcome;
  }
  if (ended) records.push_back(end_record(at, outcome, turns.size()));
  auto ok = to.commit(records);
  ASSERT_TRUE(ok) << ok.error().message;
}

std::string text_of(const std::string& file) {
  std::stringstream text;
  text << std::ifstream{scratch() + "/" + file}.rdbuf();
  return text.str();
}

class report_command : public testing::Test {
protected:
  static void SetUpTestSuite() {
    auto run = create_run({scratch() + "/runs/" + run_name, run_name, ""}, {}, {});
    ASSERT_TRUE(run) << run.error().message;
    auto s = store::open({run->store, false, uint64_t{1} << 24, false});
    ASSERT_TRUE(s) << s.error().message;
    commit(*s, {relu, 0, 0}, {broken, right(1.05), right(4)});
    commit(*s, {relu, 0, 1}, {wrong, wrong});
    commit(*s, {relu, 0, 2}, {right(1.05)});
    commit(*s, {gemm, 1, 0}, {broken});
    commit(*s, {gemm, 1, 1}, {right(0.5), lost});
    commit(*s, {fused, 2, 0}, {right(2), broken});
    commit(*s, {fused, 2, 1}, {wrong}, false);
  }
};

TEST_F(report_command, of_a_run_agrees_with_counting_by_hand) {
  auto x = kernelmill({"report", run_name, "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto document = x.document();
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["run"], run_name);
  ASSERT_EQ(document["groups"].size(), 2u);
  auto one = document["groups"][0];
  EXPECT_EQ(one["group"], "level 1");
  EXPECT_EQ(one["level"], 1);
  EXPECT_EQ(one["problems"], 2);
  EXPECT_EQ(one["samples"], 4);
  EXPECT_EQ(one["left_out"]["infrastructure"], 1);
  EXPECT_EQ(one["compiled"]["count"], 3);
  EXPECT_EQ(one["correct"]["share"], 0.5);
  EXPECT_EQ(one["fast_p"][1]["by_estimate"]["count"], 2);
  EXPECT_EQ(one["fast_p"][1]["by_lower_bound"]["count"], 1); // 1.05 may be slower
  EXPECT_EQ(one["fast_1_by_lower_bound"]["count"], 1);
  EXPECT_EQ(one["fast_p"][2]["by_estimate"]["count"], 1);
  EXPECT_NEAR(one["pass_at_k"][0]["probability"].get<double>(), 1.0 / 3, 1e-12); // 2/3 and 0
  EXPECT_EQ(one["turns_to_first_correct"]["mean_turns"], 1.5);
  auto all = document["all"];
  EXPECT_EQ(all["samples"], 5);
  EXPECT_EQ(all["left_out"]["open"], 1);
  EXPECT_NEAR(all["geomean_speedup"].get<double>(), std::cbrt(8.4), 1e-12);
}

TEST_F(report_command, by_turn_counts_every_turn_but_lost_ones) {
  auto x = kernelmill({"report", run_name, "--by", "turn", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto all = x.document()["all"];
  EXPECT_EQ(all["samples"], 11);
  EXPECT_EQ(all["left_out"]["infrastructure"], 1);
  EXPECT_EQ(all["correct"]["count"], 5);
  EXPECT_EQ(all["turns_to_first_correct"]["episodes"], 4);
}

TEST_F(report_command, tells_people_n_and_what_is_left_out) {
  auto x = kernelmill({"report", run_name, "--p", "1", "--k", "2"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("level 2"), HasSubstr("0.600 (3/5)"), HasSubstr("FAST_1 LOW"),
                           HasSubstr("infrastructure's fault: 1"), HasSubstr("not ended: 1"),
                           HasSubstr("PASS@2"), Not(HasSubstr("FAST_2"))));
}

TEST_F(report_command, fits_into_a_narrow_terminal) {
  program_options narrow;
  narrow.environment = {"COLUMNS=60"};
  auto x = kernelmill({"report", run_name, "--by", "turn", "--eval-results",
                       "narrow_of_a_long_name_that_is_told_{level}.json"},
                      narrow);
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("FAST_1 LOW counts by"));
  std::istringstream lines{x.out};
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << line;
}

TEST_F(report_command, reads_what_it_wrote_as_the_same_figures) {
  for (const std::string by : {"episode", "turn"}) {
    auto name = "back/" + by + "_level{level}.json";
    auto wrote =
        kernelmill({"report", run_name, "--by", by, "--eval-results", name, "--json"}).document();
    ASSERT_EQ(wrote["eval_results"]["files"].size(), 2u) << wrote;
    auto read = kernelmill({"report", "--from", name, "--json"}).document();
    for (const auto& rows : {wrote["groups"], read["groups"]}) ASSERT_EQ(rows.size(), 2u) << by;
    for (auto* rows : {&wrote["groups"], &read["groups"]})
      for (auto& row : *rows) row.erase("left_out"); // files do not tell
    EXPECT_EQ(read["groups"], wrote["groups"]) << by;
  }
}

TEST_F(report_command, writes_what_the_benchmark_reads) {
  auto x = kernelmill({"report", run_name, "--eval-results", "form_{level}.json"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("wrote form_1.json: 4 samples of level 1"));
  auto document = nlohmann::json::parse(text_of("form_1.json"));
  ASSERT_EQ(document["19"].size(), 3u);
  auto best = document["19"][0];
  EXPECT_EQ(best["sample_id"], 0);
  EXPECT_EQ(best["correctness"], true);
  EXPECT_EQ(best["runtime"], 2.0);
  EXPECT_EQ(best["ref_runtime"], 8.0);
  EXPECT_EQ(best["metadata"]["kernelmill"]["turn"], "scored/g0.e0.t2");
  EXPECT_EQ(document["1"][0]["runtime"], -1.0);
  EXPECT_EQ(document["1"].size(), 1u); // the other was lost
}

TEST_F(report_command, levels_in_one_file_are_refused_with_the_way_out) {
  auto x = kernelmill({"report", run_name, "--eval-results", "one.json"});
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, AllOf(HasSubstr("levels 1, 2"), HasSubstr("{level}")));
  EXPECT_FALSE(std::filesystem::exists(scratch() + "/one.json"));
}

TEST_F(report_command, of_the_benchmarks_own_file_takes_a_baseline) {
  write_file("golden/eval_results.json", R"json({
    "19": [
        {"sample_id": 0, "compiled": true, "correctness": true,
         "metadata": {"hardware": "NVIDIA L40S", "device": "cuda:0", "correctness_trials": "(5 / 5)"},
         "runtime": 0.0234,
         "runtime_stats": {
  "mean" : 0.0234, "std" : 0.0004, "min" : 0.0227, "max" : 0.0256, "num_trials" : 100,
      "hardware" : "NVIDIA L40S", "device" : "cuda:0"
}
},
        {"sample_id": 1, "compiled": true, "correctness": false,
         "metadata": {"correctness_issue": "Output mismatch"}, "runtime": -1.0, "runtime_stats": {}}
    ],
    "20": [
        {"sample_id": 0, "compiled": false, "correctness": false,
         "metadata": {"compilation_error": "nvcc"}, "runtime": -1.0, "runtime_stats": {}},
        {"sample_id": 1, "compiled": true, "correctness": true, "metadata": {}, "runtime": 2.0,
         "runtime_stats": {}}
    ]
})json");
  write_file("golden/baseline.json", R"json({"level1": {"19_ReLU.py": {"mean": 0.0468},
    "20_LeakyReLU.py": {"mean": 1.0}}, "level2": {"19_other.py": {"mean": 9.0}}})json");
  auto x = kernelmill({"report", "--from", "golden/eval_results.json", "--baseline",
                       "golden/baseline.json", "--level", "1", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto all = x.document()["all"];
  EXPECT_EQ(all["samples"], 4);
  EXPECT_EQ(all["compiled"]["share"], 0.75);
  EXPECT_EQ(all["correct"]["share"], 0.5);
  EXPECT_EQ(all["fast_p"][1]["by_estimate"]["share"], 0.25);
  EXPECT_NEAR(all["geomean_speedup"].get<double>(), 1, 1e-12);
  EXPECT_EQ(all["pass_at_k"][0]["probability"], 0.5);
  EXPECT_EQ(x.document()["groups"][0]["group"], "level 1");
  // Without the baseline nothing is known of speed.
  auto bare = kernelmill({"report", "--from", "golden/eval_results.json", "--json"}).document();
  EXPECT_EQ(bare["all"]["timed"], 0);
  EXPECT_EQ(bare["all"]["correct"]["share"], 0.5);
  auto unsure = kernelmill(
      {"report", "--from", "golden/eval_results.json", "--baseline", "golden/baseline.json"});
  EXPECT_EQ(unsure.code, 2);
  EXPECT_THAT(unsure.err, HasSubstr("--level"));
}

TEST_F(report_command, faults_of_the_command_line_are_2_and_say_what_to_do) {
  write_file("bad.json", R"({"1": [{"compiled": 1}]})");
  for (const auto& words :
       std::vector<std::vector<std::string>>{{},
                                             {run_name, "--from", "x.json"},
                                             {run_name, "--level", "1"},
                                             {run_name, "--baseline", "x.json"},
                                             {run_name, "--by", "group"},
                                             {run_name, "--p", "0,,1"},
                                             {run_name, "--p", "fast"},
                                             {run_name, "--k", "0"},
                                             {run_name, "--k", "1.5"},
                                             {"--from", "bad.json", "--by", "turn"},
                                             {"--from", "bad.json", "--eval-results", "x.json"},
                                             {"--from", "level_{level}.json", "--level", "1"},
                                             {"--from", "bad.json"}}) {
    std::vector<std::string> arguments{"report"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    auto x = kernelmill(arguments);
    EXPECT_EQ(x.code, 2) << testing::PrintToString(words) << x.err;
    EXPECT_EQ(x.out, "") << testing::PrintToString(words);
    EXPECT_THAT(x.err, HasSubstr("next: ")) << testing::PrintToString(words);
  }
}

TEST_F(report_command, what_is_not_there_is_3) {
  EXPECT_EQ(kernelmill({"report", "scorde"}).code, 3);
  EXPECT_EQ(kernelmill({"report", "--from", "none.json"}).code, 3);
  EXPECT_EQ(kernelmill({"report", "--from", "none_{level}.json"}).code, 3);
}

} // namespace report_command_test

} // namespace kernelmill::test

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/analysis/report/eval_results.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::reporting {

namespace eval_results_test {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class eval_results_file : public testing::Test {
protected:
  void SetUp() override {
    auto pattern = (fs::temp_directory_path() / "kernelmill-report-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  std::string write(const std::string& text) const {
    std::ofstream{path("file.json")} << text;
    return path("file.json");
  }

  expected<sample_set> read(const std::string& text, const baseline_times* baseline = nullptr,
                            std::optional<uint32_t> level = {}) const {
    return read_eval_results({write(text), level, baseline});
  }

  /// What is said of a text that cannot be used.
  std::string complaint(const std::string& text) const {
    auto x = read(text);
    if (x) return "read";
    EXPECT_EQ(x.error().category, "bad_eval_results") << x.error().message;
    EXPECT_NE(x.error().hint, "");
    EXPECT_THAT(x.error().message, HasSubstr("file.json"));
    return x.error().message;
  }

  std::string directory_;
};

sample measured() {
  sample x;
  x.task = "kernelbench/level1/19_ReLU";
  x.id = 2;
  x.turn = "first/g3.e2.t1";
  x.compiled = x.correct = true;
  x.speedup = speedup_interval{1.5, 1.4, 1.6};
  x.turns_to_first_correct = 2;
  x.candidate = run_time{0.123456789012, 40};
  x.reference = run_time{0.185, 40};
  x.overhead_ms = 0.001;
  x.contract = "torch";
  x.backend = "cuda";
  x.hardware = "NVIDIA H200";
  x.category = "success";
  x.cases = x.cases_passed = 5;
  return x;
}

TEST_F(eval_results_file, has_the_benchmarks_keys_and_types) {
  auto document = eval_results({measured()}, 1);
  ASSERT_EQ(document["19"].size(), 1u);
  auto x = document["19"][0];
  EXPECT_EQ(x["sample_id"], 2);
  EXPECT_EQ(x["compiled"], true);
  EXPECT_EQ(x["correctness"], true);
  EXPECT_EQ(x["runtime"], 0.123456789012);
  EXPECT_EQ(x["ref_runtime"], 0.185);
  EXPECT_EQ(x["metadata"]["hardware"], "NVIDIA H200");
  EXPECT_EQ(x["metadata"]["device"], "cuda");
  EXPECT_EQ(x["metadata"]["correctness_trials"], "(5 / 5)");
  for (const auto* key : {"mean", "std", "min", "max", "num_trials", "hardware", "device"})
    EXPECT_TRUE(x["runtime_stats"].contains(key)) << key;
  EXPECT_EQ(x["runtime_stats"]["median"], 0.123456789012);
}

TEST_F(eval_results_file, says_minus_1_of_what_was_not_measured_and_why_it_failed) {
  auto x = measured();
  x.compiled = x.correct = false;
  x.candidate = x.reference = {};
  x.speedup = {};
  x.category = "compile_error";
  x.message = "expected ';'";
  auto e = eval_results({x}, 1)["19"][0];
  EXPECT_EQ(e["runtime"], -1.0);
  EXPECT_FALSE(e.contains("ref_runtime"));
  EXPECT_EQ(e["runtime_stats"], nlohmann::ordered_json::object());
  EXPECT_EQ(e["metadata"]["compilation_error"], "expected ';'");
  x.compiled = true;
  x.category = "wrong_result";
  EXPECT_EQ(eval_results({x}, 1)["19"][0]["metadata"]["correctness_issue_name"], "wrong_result");
  x.category = "out_of_memory";
  EXPECT_EQ(eval_results({x}, 1)["19"][0]["metadata"]["runtime_error_name"], "out_of_memory");
}

TEST_F(eval_results_file, reads_back_as_what_it_was_made_of) {
  auto file = path("results.json");
  auto wrote = write_eval_results({measured()}, file);
  ASSERT_TRUE(wrote) << wrote.error().message;
  auto read = read_eval_results({file, std::nullopt, nullptr});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->samples.size(), 1u);
  const auto& x = read->samples[0];
  auto y = measured();
  EXPECT_EQ(x.task, y.task);
  EXPECT_EQ(x.id, y.id);
  EXPECT_EQ(x.turn, y.turn);
  EXPECT_EQ(x.speedup->estimate, 1.5);
  EXPECT_EQ(x.speedup->low, 1.4);
  EXPECT_EQ(x.turns_to_first_correct, 2u);
  EXPECT_EQ(x.candidate->ms, y.candidate->ms);
  EXPECT_EQ(x.candidate->calls, 40u);
}

TEST_F(eval_results_file, is_one_for_each_level) {
  auto x = measured(), y = measured(), other = measured();
  y.task = "kernelbench/level2/19_other";
  other.task = "native/row_sum";
  auto refused = write_eval_results({x, y}, path("results.json"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().category, "usage");
  EXPECT_THAT(refused.error().message, HasSubstr("levels 1, 2"));
  EXPECT_THAT(refused.error().hint, HasSubstr("{level}"));
  EXPECT_FALSE(fs::exists(path("results.json")));
  auto wrote = write_eval_results({x, y, other}, path("new/level_{level}.json"));
  ASSERT_TRUE(wrote) << wrote.error().message;
  ASSERT_EQ(wrote->files.size(), 2u);
  EXPECT_EQ(wrote->passed_over, 1u);
  EXPECT_TRUE(fs::exists(path("new/level_2.json")));
  EXPECT_EQ(write_eval_results({other}, path("x.json")).error().category, "not_found");
}

TEST_F(eval_results_file, of_the_benchmark_needs_few_keys) {
  auto x = read(R"({"1": [{"sample_id": 0, "compiled": true, "correctness": true,
      "metadata": {"hardware": "NVIDIA H100", "device": "cuda:0", "max_difference": ["0.1"]},
      "runtime": 2.0, "runtime_stats": {"mean": 2.0, "std": NaN, "num_trials": 100},
      "ref_runtime": 3.0}],
    "2": [{}, {"compiled": false, "runtime": -1.0}],
    "3": {"sample_id": 0, "compiled": true, "correctness": false, "metadata": {}}})",
                nullptr, 1);
  ASSERT_TRUE(x) << x.error().message;
  ASSERT_EQ(x->samples.size(), 4u);
  EXPECT_EQ(x->samples[0].task, "kernelbench/level1/1");
  EXPECT_EQ(x->samples[0].speedup->estimate, 1.5);
  EXPECT_FALSE(x->samples[0].speedup->low);
  EXPECT_EQ(x->samples[2].id, 1u);
  EXPECT_FALSE(x->samples[2].candidate);
  EXPECT_TRUE(x->samples[3].compiled);
}

TEST_F(eval_results_file, a_word_of_python_inside_a_text_stays) {
  auto x = read(R"({"1": [{"metadata": {"hardware": "a \" NaN Infinity"}}]})");
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_EQ(x->samples[0].hardware, "a \" NaN Infinity");
}

TEST_F(eval_results_file, of_wrong_types_is_refused_by_file_and_key) {
  EXPECT_THAT(complaint(R"([])"), HasSubstr("the document must be an object"));
  EXPECT_THAT(complaint(R"({"relu": []})"), HasSubstr("\"relu\""));
  EXPECT_THAT(complaint(R"({"1": 5})"), HasSubstr("1 must be a list of samples, not 5"));
  EXPECT_THAT(complaint(R"({"1": [{}, 7]})"), HasSubstr("1[1] must be an object"));
  EXPECT_THAT(complaint(R"({"1": [{"compiled": "yes"}]})"),
              HasSubstr("1[0].compiled must be true or false, not \"yes\""));
  EXPECT_THAT(complaint(R"({"1": [{"runtime": "2"}]})"), HasSubstr("1[0].runtime"));
  EXPECT_THAT(complaint(R"({"1": [{"sample_id": -1}]})"), HasSubstr("1[0].sample_id"));
  EXPECT_THAT(complaint(R"({"1": [{"metadata": []}]})"), HasSubstr("1[0].metadata"));
  EXPECT_THAT(complaint(R"({"1": [{"metadata": {"kernelmill": {"speedup": {"low": "x"}}}}]})"),
              HasSubstr("1[0].metadata.kernelmill.speedup.low"));
}

TEST_F(eval_results_file, that_is_no_json_is_refused_by_line_and_column) {
  EXPECT_THAT(complaint("{\n  \"1\": [nan]}"), HasSubstr("line 2, column 10"));
  EXPECT_EQ(read_eval_results({path("none.json"), {}, nullptr}).error().category, "not_found");
}

TEST_F(eval_results_file, never_counts_a_sample_twice) {
  EXPECT_THAT(complaint(R"({"1": [{"sample_id": 3}, {"sample_id": 3}]})"),
              AllOf(HasSubstr("1[1]"), HasSubstr("sample_id 3")));
}

TEST_F(eval_results_file, of_another_problem_than_it_says_is_refused) {
  EXPECT_THAT(
      complaint(R"({"7": [{"metadata": {"kernelmill": {"task": "kernelbench/level1/19_ReLU"}}}]})"),
      HasSubstr("7[0].metadata.kernelmill.task"));
}

TEST_F(eval_results_file, takes_the_reference_from_a_baseline_where_it_has_none) {
  baseline_times times{{1, {{19, 4.0}, {20, 4.0}}}, {2, {{19, 8.0}}}};
  const std::string text = R"({"19": [{"correctness": true, "runtime": 2.0}],
                               "20": [{"correctness": true, "runtime": 2.0, "ref_runtime": 1.0}],
                               "21": [{"correctness": true, "runtime": 2.0}]})";
  auto x = read(text, &times, 2);
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_EQ(x->samples[0].speedup->estimate, 4);
  EXPECT_EQ(x->samples[1].speedup->estimate, 0.5);
  EXPECT_FALSE(x->samples[2].speedup);
  auto unsure = read(text, &times);
  ASSERT_FALSE(unsure);
  EXPECT_THAT(unsure.error().hint, HasSubstr("--level"));
  times.erase(2);
  auto only = read(text, &times);
  ASSERT_TRUE(only) << only.error().message;
  EXPECT_EQ(only->samples[0].speedup->estimate, 2);
  EXPECT_EQ(only->samples[0].task, "kernelbench/level1/19");
  EXPECT_THAT(read(text, &times, 3).error().message, HasSubstr("level3"));
}

TEST_F(eval_results_file, baselines_are_read_by_level_and_problem) {
  auto x = read_baseline_times(write(
      R"({"level1": {"19_ReLU.py": {"mean": 0.2, "std": 0.01}, "7_x.py": {"mean": -1}}, "note": 1})"));
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_EQ((*x)[1][19], 0.2);
  EXPECT_EQ((*x)[1].count(7), 0u);
  for (const auto* text : {R"([])", R"({})", R"({"level1": 3})", R"({"level1": {"ReLU.py": {}}})",
                           R"({"level1": {"19_ReLU.py": {"mean": "fast"}}})"}) {
    auto bad = read_baseline_times(write(text));
    ASSERT_FALSE(bad) << text;
    EXPECT_EQ(bad.error().category, "bad_baseline_times") << text;
    EXPECT_THAT(bad.error().message, HasSubstr("file.json")) << text;
  }
}

} // namespace eval_results_test

} // namespace kernelmill::reporting

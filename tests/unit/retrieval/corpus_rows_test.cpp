#include "retrieval/corpora/corpus_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "retrieval/corpora/distinct_kernels.hpp"
#include "retrieval/corpora/row_file.hpp"
#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill::test {

namespace corpus_rows_test {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class row_files : public ::testing::Test {
protected:
  /// "LINE:TEXT" of each row, or what failed.
  std::vector<std::string> rows_of(const std::string& text, size_t most = 100) {
    folder.write("rows", text);
    std::vector<std::string> result;
    auto done = each_row(folder / "rows", [&](const file_row& row) {
      EXPECT_EQ(row.number, result.size() + 1);
      result.push_back(std::to_string(row.line) + ":" + std::string{row.text});
      return result.size() < most;
    });
    if (!done) result.push_back(failure(done));
    return result;
  }

  temporary_folder folder;
};

TEST_F(row_files, json_lines_are_rows_and_blank_lines_are_none) {
  EXPECT_THAT(rows_of("{\"a\": 1}\n\n  {\"a\": 2}\r\nno json\n{\"a\": 3}"),
              ElementsAre("1:{\"a\": 1}", "3:{\"a\": 2}", "4:no json", "5:{\"a\": 3}"));
  EXPECT_THAT(rows_of("\xef\xbb\xbf\n{\"a\": 1}\n"), ElementsAre("2:{\"a\": 1}"));
  EXPECT_THAT(rows_of(" \n"), ElementsAre());
  EXPECT_THAT(rows_of("{}\n{}\n{}\n", 2), ElementsAre("1:{}", "2:{}"));
}

TEST_F(row_files, an_array_is_rows_whatever_stands_in_its_quotes) {
  EXPECT_THAT(rows_of("[{\"a\": \"}],[\\\"{\"},\n {\n\"b\": [{}, {}]},{}\n]\n"),
              ElementsAre("1:{\"a\": \"}],[\\\"{\"}", "2:{\n\"b\": [{}, {}]}", "3:{}"));
  EXPECT_THAT(rows_of("[]"), ElementsAre());
}

// Rows are cut by blocks of a megabyte.
TEST_F(row_files, a_row_may_be_longer_than_what_is_read_at_once) {
  std::string long_row = "{\"a\": \"" + std::string(2'500'000, 'x') + "\\\"\"}";
  EXPECT_THAT(rows_of("[" + long_row + ",\n" + long_row + "]"),
              ElementsAre("1:" + long_row, "2:" + long_row));
  EXPECT_THAT(rows_of(long_row + "\n" + long_row), ElementsAre("1:" + long_row, "2:" + long_row));
}

TEST_F(row_files, what_is_none_says_what_to_do) {
  EXPECT_THAT(rows_of("[{\"a\": 1},\n{\"a\": "),
              ElementsAre("1:{\"a\": 1}", AllOf(HasSubstr("malformed_corpus"), HasSubstr("rows:2"),
                                                HasSubstr("cut off"))));
  EXPECT_THAT(rows_of("[{},\n7]"),
              ElementsAre("1:{}", AllOf(HasSubstr("rows:2"), HasSubstr("no object"))));
  EXPECT_THAT(rows_of("PAR1\x15\x04"),
              ElementsAre(AllOf(HasSubstr("Parquet"),
                                HasSubstr("python -m kernelmill.json_lines " + folder / "rows"))));
  EXPECT_THAT(rows_of("\x1f\x8b\x08"), ElementsAre(HasSubstr("gunzip")));
  auto never = [](const file_row&) { return true; };
  EXPECT_THAT(failure(each_row(folder / "none", never)), HasSubstr("missing_file"));
  EXPECT_THAT(failure(each_row(folder.path(), never)), HasSubstr("it is a folder"));
}

tl::expected<corpus_kernel, std::string> read(corpus_shape shape, const json& row) {
  auto text = row.is_string() ? row.get<std::string>() : row.dump();
  return kernel_of_row(shape, {text, 3, 7});
}

std::string fault_of(corpus_shape shape, const json& row) {
  auto x = read(shape, row);
  return x ? "" : x.error();
}

json kernelbook_columns() {
  return {{"uuid", 17},
          {"python_code", "import torch"},
          {"triton_code", "import triton"},
          {"module_name", "SumAggregator"},
          {"entry_point", "SumAggregator"},
          {"repo_name", "owner/name"},
          {"licenses", {"MIT", "BSD-3-Clause"}},
          {"stars", nullptr}};
}

TEST(corpus_rows, kernelbook_has_its_columns) {
  auto row = kernelbook_columns();
  auto x = read(corpus_shape::kernelbook, row);
  ASSERT_TRUE(x) << x.error();
  EXPECT_EQ(x->kernel.id, "kernelbook/17");
  EXPECT_EQ(x->kernel.task, "SumAggregator");
  EXPECT_EQ(x->kernel.source, "import triton");
  EXPECT_EQ(x->kernel.reference, "import torch");
  EXPECT_EQ(x->kernel.language, "python");
  EXPECT_EQ(x->kernel.backend, "cuda");
  EXPECT_EQ(x->kernel.origin, "KernelBook, owner/name, MIT, BSD-3-Clause");
  EXPECT_EQ(x->kernel.rights_source, "kernelbook");
  EXPECT_EQ(x->kernel.speedup, 0);
  EXPECT_FALSE(x->correct) << "it does not say";

  for (const auto* column : {"uuid", "module_name", "repo_name", "licenses"}) row.erase(column);
  x = read(corpus_shape::kernelbook, row);
  ASSERT_TRUE(x) << x.error();
  EXPECT_EQ(x->kernel.id, "kernelbook/7");
  EXPECT_EQ(x->kernel.task, "SumAggregator");
  EXPECT_EQ(x->kernel.origin, "KernelBook");
}

TEST(corpus_rows, a_malformed_row_names_its_column) {
  auto row = kernelbook_columns();
  row["triton_code"] = nullptr;
  EXPECT_EQ(fault_of(corpus_shape::kernelbook, row), "the column \"triton_code\" holds no text");
  row.erase("triton_code");
  EXPECT_EQ(fault_of(corpus_shape::kernelbook, row), "the column \"triton_code\" is missing");
  row["triton_code"] = std::string("a\0b", 3);
  EXPECT_EQ(fault_of(corpus_shape::kernelbook, row),
            "the column \"triton_code\" holds a zero byte");
  EXPECT_EQ(fault_of(corpus_shape::kernelbook, "{\"python_code\": "), "it is no JSON object");
  EXPECT_EQ(fault_of(corpus_shape::kernelbook, "[1]"), "it is no JSON object");
  EXPECT_EQ(fault_of(corpus_shape::kernelbook, std::string(100'000, '[')), "it nests too deep");
}

json sakana_columns() {
  return {{"Op_Name", "19_ReLU"},
          {"Level_ID", 1},
          {"Task_ID", 19},
          {"Kernel_Name", "relu_vec4"},
          {"CUDA_Speedup_Native", 1.25},
          {"PyTorch_Code_Module", "import torch"},
          {"CUDA_Code", "__global__ void relu();"},
          {"Correct", true}};
}

TEST(corpus_rows, sakanas_rows_are_of_the_problems_that_they_solve) {
  auto row = sakana_columns();
  auto x = read(corpus_shape::sakana, row);
  ASSERT_TRUE(x) << x.error();
  EXPECT_EQ(x->kernel.id, "sakana-archive/1-19-7");
  EXPECT_EQ(x->kernel.task, "kernelbench/level1/19_ReLU");
  EXPECT_EQ(kernelbench_level(x->kernel.task), 1U);
  EXPECT_EQ(x->kernel.language, "cuda");
  EXPECT_EQ(x->kernel.speedup, 1.25);
  EXPECT_EQ(x->kernel.rights_source, "sakana-archive");
  EXPECT_THAT(x->kernel.origin, AllOf(HasSubstr("relu_vec4"), HasSubstr("CC-BY-4.0")));
  EXPECT_EQ(x->kernel.split, "") << "the run's tasks say it";

  row["Op_Name"] = "ReLU";
  EXPECT_EQ(read(corpus_shape::sakana, row)->kernel.task, "kernelbench/level1/19_ReLU");
  row.erase("Level_ID");
  EXPECT_EQ(read(corpus_shape::sakana, row)->kernel.task, "ReLU");
  EXPECT_EQ(read(corpus_shape::sakana, row)->kernel.split, "train");
  EXPECT_EQ(kernelbench_level("ReLU"), 0U);
}

TEST(corpus_rows, numbers_and_truth_may_be_texts_or_null) {
  auto row = sakana_columns();
  row["CUDA_Speedup_Native"] = " 2.5 ";
  row["Level_ID"] = "2";
  row["Correct"] = "False";
  auto x = read(corpus_shape::sakana, row);
  ASSERT_TRUE(x) << x.error();
  EXPECT_EQ(x->kernel.speedup, 2.5);
  EXPECT_EQ(kernelbench_level(x->kernel.task), 2U);
  EXPECT_EQ(x->correct, false);
  EXPECT_THAT(x->kernel.origin, HasSubstr("found wrong there"));
  for (const json& none : {json(nullptr), json("fast"), json(-1), json("nan"), json("")}) {
    row["CUDA_Speedup_Native"] = none;
    EXPECT_EQ(read(corpus_shape::sakana, row)->kernel.speedup, 0) << none;
  }
  row["Correct"] = nullptr;
  EXPECT_THAT(fault_of(corpus_shape::sakana, row), HasSubstr("\"Correct\""));
}

TEST(corpus_rows, own_rows_have_our_columns) {
  auto x = read(corpus_shape::ndjson, {{"id", "a1"},
                                       {"task", "native/row_sum"},
                                       {"kernel", "int x;"},
                                       {"reference", "import torch"},
                                       {"language", "hip"},
                                       {"operator_family", "reduction"},
                                       {"speedup", 3},
                                       {"device", "AMD Instinct MI300X"},
                                       {"date", "2026-11-30"},
                                       {"origin", "our library"},
                                       {"licence", "MIT"},
                                       {"source", "own"},
                                       {"correct", true}});
  ASSERT_TRUE(x) << x.error();
  EXPECT_EQ(x->kernel.id, "own/a1");
  EXPECT_EQ(x->kernel.backend, "hip");
  EXPECT_EQ(x->kernel.origin, "our library, MIT");
  EXPECT_EQ(x->kernel.device, "AMD Instinct MI300X");
  EXPECT_EQ(x->kernel.date, "2026-11-30");
  EXPECT_EQ(x->kernel.operator_family, "reduction");
  x = read(corpus_shape::ndjson, {{"kernel", "import triton"}, {"language", "triton"}});
  ASSERT_TRUE(x) << x.error();
  EXPECT_EQ(x->kernel.id, "ndjson/7");
  EXPECT_EQ(x->kernel.language, "python") << "as a fence names it";
  EXPECT_EQ(x->kernel.rights_source, "");
  EXPECT_EQ(fault_of(corpus_shape::ndjson, {{"code", "x"}}), "the column \"kernel\" is missing");
  EXPECT_THAT(fault_of(corpus_shape::ndjson, {{"kernel", "x"}, {"language", "basic"}}),
              AllOf(HasSubstr("basic"), HasSubstr("triton")));
  EXPECT_THAT(fault_of(corpus_shape::ndjson, {{"kernel", "x"}, {"backend", "gpu"}}),
              AllOf(HasSubstr("\"backend\" is \"gpu\""), HasSubstr("hip")));
  for (const json& wrong : {json("fast"), json(-1), json(true)})
    EXPECT_THAT(fault_of(corpus_shape::ndjson, {{"kernel", "x"}, {"speedup", wrong}}),
                HasSubstr("\"speedup\" is no number"))
        << wrong;
  EXPECT_TRUE(read(corpus_shape::ndjson, {{"kernel", "x"}, {"speedup", nullptr}}));
}

TEST(corpus_rows, a_name_is_a_short_line_and_code_has_a_bound) {
  auto x = read(corpus_shape::ndjson, {{"kernel", "import triton"},
                                       {"source", "own"},
                                       {"id", std::string("a\n```\x1b[2J\0b", 11)},
                                       {"task", std::string(511, 't') + "\u00e9"}});
  ASSERT_TRUE(x) << x.error();
  EXPECT_EQ(x->kernel.id, "own/a ``` [2J b");
  EXPECT_EQ(x->kernel.task, std::string(511, 't'));
  const std::string huge((1 << 20) + 1, 'x');
  EXPECT_THAT(fault_of(corpus_shape::ndjson, {{"kernel", huge}}), HasSubstr("1048576"));
  EXPECT_THAT(fault_of(corpus_shape::ndjson, {{"kernel", "x"}, {"reference", huge}}),
              HasSubstr("1048576"));
}

kernel_example kernel(const std::string& source, const std::string& reference, double speedup) {
  kernel_example result;
  result.source = source;
  result.reference = reference;
  result.speedup = speedup;
  return result;
}

TEST(distinct_kernels, of_kernels_that_repeat_each_other_the_fastest_stays) {
  const std::string sum = "import torch\ndef forward(x):\n    return x.sum(-1)\n";
  const std::string mean = "import torch\ndef forward(x):\n    return x.mean(-1)\n";
  const std::vector<kernel_example> all = {
      kernel(row_sum_kernel, sum, 1),         // its repetition is faster
      kernel(row_sum_renamed, sum, 2),        //
      kernel(transpose_kernel, sum, 1),       // another text
      kernel(row_sum_renamed, mean, 2),       // the same text, however it is called
      kernel(row_sum_kernel + "\n", mean, 1), // the first in another place
      kernel(row_max_kernel, {}, 0),          kernel(row_max_kernel, {}, 0)};
  EXPECT_THAT(repeated_kernels(all), ElementsAre(true, false, false, true, true, false, true));
}

// What a compiler writes for two operators differs in a line.
TEST(distinct_kernels, like_kernels_of_other_references_stay) {
  const std::vector<kernel_example> all = {
      kernel(row_sum_kernel, "import torch\ndef forward(x):\n    return x.sum(-1)\n", 1),
      kernel(row_sum_renamed, "import torch\ndef forward(x):\n    return torch.relu(x)\n", 2)};
  EXPECT_THAT(repeated_kernels(all), ElementsAre(false, false));
}

// The leak guard learns whose solution a text is from the entries alone, and an entry has one
// licence.
TEST(distinct_kernels, a_kernel_of_another_task_or_source_stays) {
  std::vector<kernel_example> all = {kernel(row_sum_kernel, {}, 1), kernel(row_sum_kernel, {}, 9),
                                     kernel(row_sum_kernel, {}, 9)};
  all[0].task = "kernelbench/level1/47_Sum";
  all[0].rights_source = all[1].rights_source = "sakana-archive";
  all[2].rights_source = "own";
  EXPECT_THAT(repeated_kernels(all), ElementsAre(false, false, false));
  all[1].task = all[0].task;
  EXPECT_THAT(repeated_kernels(all), ElementsAre(true, false, false));
}

} // namespace corpus_rows_test

} // namespace kernelmill::test

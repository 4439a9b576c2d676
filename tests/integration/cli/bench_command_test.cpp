// `build` and `bench`, as users call them. No test asserts a time.

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"
#include "tests/integration/cli/sources.hpp"

namespace kernelmill::test {
namespace bench_command_test {

using testing::AllOf;
using testing::HasSubstr;

// Right wherever there are at most eight columns, or more than a thousand.
const std::string wrong_between =
    R"(extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    double sum = cols == 96 ? 1000 : 0;
    for (int j = 0; j < cols; ++j) sum += x[(long)i * cols + j];
    y[i] = (float)sum;
  }
}
)";

program_result bench(const std::string& source, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"bench", "--task", "native/row_sum"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back(write_file("kernel.cpp", source));
  return kernelmill(arguments);
}

TEST(bench, times_each_shape_beside_the_baseline_with_intervals) {
  auto x = bench(row_sum, {"--json", "--evaluations", "2", "--shapes", "rows=16:32,cols=64"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["task"], "native/row_sum");
  EXPECT_EQ(d["compiled"], true);
  EXPECT_EQ(d["confidence"], 0.95);
  EXPECT_NE(d["device"], "");
  ASSERT_EQ(d["shapes"].size(), 2u);
  EXPECT_EQ(d["shapes"][0]["shape"], "rows=16 cols=64");
  EXPECT_EQ(d["shapes"][1]["shape"], "rows=32 cols=64");
  for (const auto& row : d["shapes"]) {
    // A busy machine may time nothing, and then says so.
    if (row["timed"] == false) {
      EXPECT_NE(row["reason"], "") << row;
      continue;
    }
    EXPECT_EQ(row["evaluations"], 2);
    EXPECT_EQ(row["samples"].size(), 2u);
    EXPECT_GT(row["calls"], 0);
    for (auto* key : {"candidate_ms", "reference_ms", "speedup"}) {
      EXPECT_GT(row[key]["estimate"], 0) << key;
      EXPECT_LE(row[key]["low"], row[key]["estimate"]) << key;
      EXPECT_GE(row[key]["high"], row[key]["estimate"]) << key;
    }
    EXPECT_GT(row["bytes"], 0);
    EXPECT_GT(row["candidate_gb_per_s"], 0);
  }
}

TEST(bench, a_shape_that_the_task_cannot_have_is_a_wrong_argument) {
  auto x = bench(row_sum, {"--json", "--shapes", "one_row; rows=0,cols=3"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.out, "");
  EXPECT_EQ(x.fault()["category"], "usage");
  EXPECT_THAT(x.fault()["message"].get<std::string>(),
              AllOf(HasSubstr("--shapes"), HasSubstr("rows=0 cols=3"), HasSubstr("is 0")));
}

TEST(bench, a_kernel_that_is_wrong_at_one_shape_has_times_at_the_others) {
  auto x = bench(wrong_between, {"--json", "--evaluations", "1", "--shapes", "cols=64:96"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto rows = x.document()["shapes"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["outcome"], "accepted") << rows[0];
  EXPECT_NE(rows[1]["outcome"], "accepted") << rows[1];
  EXPECT_TRUE(rows[1]["speedup"].is_null());
  EXPECT_NE(rows[1]["reason"], "");
}

TEST(bench, draws_bars_with_units_for_people) {
  auto x = bench(row_sum, {"--evaluations", "1", "--shapes", "small"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("SHAPE"), HasSubstr("CANDIDATE"), HasSubstr("BASELINE"),
                           HasSubstr("rows=4 cols=8 (small)")));
  if (x.out.find("█") != x.out.npos) {
    EXPECT_THAT(x.out, HasSubstr("95 % interval"));
  }
  EXPECT_THAT(x.err, HasSubstr("1 of 1: rows=4 cols=8"));
}

TEST(bench, of_what_does_not_compile_shows_the_build) {
  auto x = bench("extern \"C\" void solve( {\n", {"--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["compiled"], false);
  EXPECT_EQ(d["error"]["category"], "compile_error");
  EXPECT_EQ(d["shapes"], nlohmann::json::array()) << "a reader of rows finds none";
}

TEST(bench, a_shape_that_does_not_exist_is_a_wrong_argument) {
  auto x = bench(row_sum, {"--json", "--shapes", "smal"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.out, "");
  EXPECT_EQ(x.fault()["category"], "usage");
  EXPECT_THAT(x.fault()["message"].get<std::string>(), HasSubstr("did you mean 'small'?"));
  EXPECT_THAT(x.fault()["hint"].get<std::string>(), HasSubstr("one_row"));
}

TEST(bench, leaves_nothing_behind) {
  auto folder = scratch() + "/tmp";
  std::filesystem::create_directories(folder);
  auto path = write_file("kernel.cpp", row_sum);
  auto x = kernelmill({"bench", "--task", "native/row_sum", "--evaluations", "1", "--shapes",
                       "rows=2,cols=2", path},
                      {{}, {}, {"TMPDIR=" + folder}});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(build, needs_no_task_and_no_gpu) {
  auto x = kernelmill({"build", "--json", write_file("kernel.cpp", row_sum)});
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_TRUE(d["task"].is_null());
  EXPECT_EQ(d["compiled"], true);
  EXPECT_EQ(d["backend"], "cpu");
  EXPECT_THAT(d["build"]["toolchain"].get<std::string>(), HasSubstr("g++"));
}

TEST(build, is_what_eval_compiles) {
  auto path = write_file("kernel.cpp", row_sum);
  auto built = kernelmill({"build", "--task", "native/row_sum", "--json", path});
  auto evaluated =
      kernelmill({"eval", "--task", "native/row_sum", "--compile-only", "--json", path});
  ASSERT_EQ(built.code, 0) << built.err;
  auto a = built.document(), b = evaluated.document();
  for (auto* x : {&a, &b}) {
    (*x)["build"].erase("cached");
    (*x)["build"].erase("seconds");
  }
  EXPECT_EQ(a, b);
}

TEST(build, says_warnings_and_errors) {
  auto warned = write_file("kernel.cpp", "#warning look here\n" + row_sum);
  auto x = kernelmill({"build", warned});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("look here"), HasSubstr("compiled, 1 warning")));
  auto broken = write_file("kernel.cpp", "extern \"C\" void solve( {\n");
  x = kernelmill({"build", broken});
  EXPECT_EQ(x.code, 0) << "a kernel that does not compile is a normal result";
  EXPECT_THAT(x.out, AllOf(HasSubstr("kernel.cpp:1:"), HasSubstr("not compiled")));
}

TEST(build, of_a_python_module_asks_for_its_task) {
  auto x = kernelmill({"build", "--json", write_file("answer.py", "import torch\n")});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.fault()["category"], "usage");
  EXPECT_THAT(x.fault()["hint"].get<std::string>(), HasSubstr("--task"));
}

} // namespace bench_command_test
} // namespace kernelmill::test

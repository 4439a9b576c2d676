// What `task check` looks at for each backend, on machines that have none but the CPU.

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace task_check_command_test {

using nlohmann::json;
using testing::HasSubstr;

program_result check(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"task", "check", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return kernelmill(arguments);
}

bool lacks_gpu(const program_result& x) {
  auto fault = x.fault();
  return fault.is_object() &&
         (fault["category"] == "nvml_missing" || fault["category"] == "no_gpu");
}

TEST(task_check_command, says_which_backends_it_looked_at) {
  auto x = check({"--backend", "cpu", "native/row_sum"});
  ASSERT_EQ(x.code, 0) << x.err << x.out;
  auto document = x.document();
  EXPECT_EQ(document["ok"], true);
  EXPECT_EQ(document["tasks"][0]["backends"], json::array({"cpu"}));
  EXPECT_EQ(document["tasks"][0]["problems"], json::array());
}

TEST(task_check_command, looks_by_itself_at_what_this_machine_has) {
  if (!lacks_gpu(check({"--backend", "cuda", "native/row_sum"})))
    GTEST_SKIP() << "this machine has a GPU";
  auto x = check({"native/row_sum"});
  ASSERT_EQ(x.code, 0) << x.err << x.out;
  EXPECT_EQ(x.document()["tasks"][0]["backends"], json::array({"cpu"}));
}

// One that comes with Kernelmill must not make a check of all fail where there is no GPU.
TEST(task_check_command, by_itself_refuses_no_task_for_what_this_machine_lacks) {
  if (!lacks_gpu(check({"--backend", "cuda", "native/row_sum"})))
    GTEST_SKIP() << "this machine has a GPU";
  auto folder = scratch() + "/of_gpus/native/row_sum";
  std::filesystem::create_directories(folder);
  std::filesystem::copy(source_file("configs/tasks/native/row_sum"), folder,
                        std::filesystem::copy_options::recursive);
  std::ifstream in{folder + "/task.json"};
  auto document = json::parse(in, nullptr, true, true);
  document["backends"] = json::array({"cuda"});
  write_file("of_gpus/native/row_sum/task.json", document.dump());
  auto x = check({"--root", scratch() + "/of_gpus"});
  EXPECT_EQ(x.code, 0) << x.err << x.out;
  auto task = x.document()["tasks"][0];
  EXPECT_EQ(task["backends"], json::array());
  EXPECT_THAT(task["notes"][0].get<std::string>(), HasSubstr("not checked"));
}

TEST(task_check_command, cuda_without_a_gpu_is_1_with_a_next_step_as_of_eval) {
  auto x = check({"--backend", "cuda", "native/row_sum"});
  if (!lacks_gpu(x)) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(x.code, 1);
  EXPECT_EQ(x.out, "");
  EXPECT_EQ(x.fault()["class"], "infrastructure");
  EXPECT_THAT(x.fault()["hint"].get<std::string>(), HasSubstr("--backend cpu"));
}

TEST(task_check_command, a_backend_that_there_is_not_is_2) {
  auto x = check({"--backend", "rocm", "native/row_sum"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("rocm"));
}

TEST(task_check_command, a_task_that_does_not_name_the_backend_is_refused) {
  auto folder = scratch() + "/gpu_tasks/native/row_sum";
  std::filesystem::create_directories(folder);
  std::filesystem::copy(source_file("configs/tasks/native/row_sum"), folder,
                        std::filesystem::copy_options::recursive);
  std::ifstream in{folder + "/task.json"};
  auto document = json::parse(in, nullptr, true, true);
  document["backends"] = json::array({"cuda"});
  write_file("gpu_tasks/native/row_sum/task.json", document.dump());
  auto x = check({"--backend", "cpu", "--root", "gpu_tasks"});
  EXPECT_EQ(x.code, 5) << x.err;
  EXPECT_THAT(x.document()["tasks"][0]["problems"][0].get<std::string>(),
              HasSubstr("does not name it in backends"));
}

// It would be called with what it does not expect, and crash or be wrong in every case.
TEST(task_check_command, a_function_of_another_signature_is_one_problem_that_names_it) {
  auto folder = scratch() + "/wrong/native/row_sum";
  std::filesystem::create_directories(folder);
  auto original = source_file("configs/tasks/native/row_sum");
  auto check_with = [&](const char* file, const std::string& text) {
    std::filesystem::copy(original, folder,
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
    write_file(std::string{"wrong/native/row_sum/"} + file, text);
    return check({"--backend", "cpu", "--root", scratch() + "/wrong"});
  };
  struct wrong {
    const char* file;
    const char* text;
    const char* asked;
  };
  const wrong all[] = {
      {"reference.cpp",
       "extern \"C\" void reference(const float* x, float* y, int, int) { *y = *x; }",
       "void reference(const double* x, double* y, double* y_scale, int rows, int cols)"},
      {"reference.cpp", "void reference(const double* x, double* y, int, int) { *y = *x; }",
       "void reference(const double* x, double* y, double* y_scale, int rows, int cols)"},
      {"baseline.cpp", "extern \"C\" void solve(const float* x, float* y, long, long) { *y = *x; }",
       "void solve(const float* x, float* y, int rows, int cols)"}};
  for (const auto& [file, text, asked] : all) {
    auto x = check_with(file, text);
    EXPECT_EQ(x.code, 5) << x.err;
    auto problems = x.document()["tasks"][0]["problems"];
    ASSERT_EQ(problems.size(), 1u) << problems;
    EXPECT_THAT(problems[0].get<std::string>(), HasSubstr(file));
    EXPECT_THAT(problems[0].get<std::string>(), HasSubstr(asked));
  }
  // The referee declares it as C's, so that the words may be missing.
  auto good =
      check_with("baseline.cpp", "void solve(const float* x, float* y, int rows, int cols) {\n"
                                 "  for (int i = 0; i < rows; ++i) {\n    float s = 0;\n"
                                 "    for (int j = 0; j < cols; ++j) s += x[long(i) * cols + j];\n"
                                 "    y[i] = s;\n  }\n}\n");
  EXPECT_EQ(good.code, 0) << good.out;
}

} // namespace task_check_command_test

} // namespace kernelmill::test

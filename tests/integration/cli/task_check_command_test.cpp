// What `task check` looks at for each backend, on machines that have none but the CPU.

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace {

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

} // namespace

} // namespace kernelmill::test

#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace task_command_test {

using testing::HasSubstr;

TEST(task_command, lists_at_least_twelve_tasks) {
  auto x = kernelmill({"task", "list", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto document = x.document();
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_GE(document["tasks"].size(), 12u);
  EXPECT_THAT(kernelmill({"task", "list"}).out, HasSubstr("native/row_sum"));
}

TEST(task_command, folds_the_list_into_the_width_of_the_terminal) {
  program_options narrow;
  narrow.environment = {"COLUMNS=72"};
  std::istringstream lines{kernelmill({"task", "list"}, narrow).out};
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 72u) << line;
  // A pipe has no width.
  EXPECT_THAT(kernelmill({"task", "list"}).out,
              HasSubstr("Top-k experts of each token with their weights\n"));
}

TEST(task_command, shows_signature_cases_and_prompt) {
  auto x = kernelmill({"task", "show", "native/row_sum", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.document()["declaration"].get<std::string>(),
              HasSubstr("solve(const float* x, float* y, int rows, int cols)"));
  bool hidden = false;
  auto document = x.document();
  for (const auto& c : document["cases"]) hidden = hidden || c["visibility"] == "hidden";
  EXPECT_TRUE(hidden);
  EXPECT_THAT(kernelmill({"task", "show", "native/row_sum"}).out, HasSubstr("hidden"));
}

TEST(task_command, the_right_diagnosis_is_in_no_document) {
  EXPECT_FALSE(kernelmill({"task", "show", "native/slow_column_sum", "--json"})
                   .document()
                   .contains("diagnosis"));
}

TEST(task_command, an_unknown_task_is_3_and_names_the_closest) {
  auto x = kernelmill({"task", "show", "native/rowsum"});
  EXPECT_EQ(x.code, 3);
  EXPECT_THAT(x.err, HasSubstr("did you mean 'native/row_sum'?"));
  EXPECT_THAT(kernelmill({"task", "show", "row_sum"}).err,
              HasSubstr("did you mean 'native/row_sum'?"));
}

TEST(task_command, a_missing_root_is_3) {
  EXPECT_EQ(kernelmill({"task", "list", "--root", "nowhere"}).code, 3);
}

TEST(task_command, a_broken_task_is_named_beside_those_that_can_be_read) {
  auto folder = scratch() + "/tasks/native/row_sum";
  std::filesystem::create_directories(folder);
  std::filesystem::copy(source_file("configs/tasks/native/row_sum"), folder,
                        std::filesystem::copy_options::recursive);
  for (const char* name : {"bad", "worse"})
    write_file(std::string{"tasks/native/"} + name + "/task.json",
               "{\"schema_version\": 1,\n \"id\": }");
  auto x = kernelmill({"task", "list", "--root", "tasks"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.out, HasSubstr("native/row_sum"));
  EXPECT_THAT(x.err, HasSubstr("native/bad/task.json"));
  EXPECT_THAT(x.err, HasSubstr("native/worse/task.json"));
  auto told = kernelmill({"task", "list", "--root", "tasks", "--json"});
  EXPECT_EQ(told.code, 2);
  EXPECT_EQ(told.document()["tasks"].size(), 1u);
  EXPECT_EQ(told.document()["broken"][0]["id"], "native/bad");
  EXPECT_TRUE(told.fault().is_object());
}

} // namespace task_command_test

} // namespace kernelmill::test

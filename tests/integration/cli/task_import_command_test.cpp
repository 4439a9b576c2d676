// `kernelmill task import`, and what the other commands make of the tasks that it brought.

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace task_import_command_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string problem_line(int level, int id, const std::string& name) {
  std::string code = "import torch\nclass Model(torch.nn.Module):\n  def forward(self, x):\n"
                     "    return x.exp()\ndef get_inputs(): return [torch.rand(8)]\n"
                     "def get_init_inputs(): return []\n";
  return json{{"level", level}, {"problem_id", id}, {"name", name}, {"code", code}}.dump() + "\n";
}

std::string problems() {
  return write_file("problems.jsonl", problem_line(1, 1, "1_Exp") + problem_line(1, 2, "2_Log") +
                                          problem_line(2, 1, "1_Conv_Exp"));
}

/// A user whose home is `name` below the scratch folder.
struct user {
  explicit user(const std::string& name) { home.environment = {"XDG_DATA_HOME=" + data(name)}; }
  static std::string data(const std::string& name) { return scratch() + "/" + name; }

  program_result operator()(const std::vector<std::string>& arguments) const {
    return kernelmill(arguments, home);
  }
  program_options home;
};

TEST(task_import, brings_tasks_that_every_command_finds) {
  user someone{"someone"};
  auto x = someone({"task", "import", "kernelbench", problems()});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("3 tasks imported, 0 unchanged"));
  EXPECT_THAT(x.out, HasSubstr("/someone/kernelmill/tasks"));
  auto list = someone({"task", "list"}).out;
  EXPECT_THAT(list, AllOf(HasSubstr("kernelbench/level1/1_Exp"), HasSubstr("native/row_sum")));
  auto shown = someone({"task", "show", "kernelbench/level1/2_Log"}).out;
  EXPECT_THAT(shown, AllOf(HasSubstr("contract torch"), HasSubstr("def get_inputs()"),
                           Not(HasSubstr("solve("))));
  auto document = someone({"task", "show", "kernelbench/level2/1_Conv_Exp", "--json"}).document();
  EXPECT_EQ(document["level"], 2);
  EXPECT_EQ(document["operator_family"], "fusion");
  EXPECT_FALSE(document.contains("cases"));
  EXPECT_THAT(someone({"__complete", "task"}).out, HasSubstr("kernelbench/level1/1_Exp\n"));
}

TEST(task_import, a_second_time_changes_nothing) {
  user someone{"twice"};
  ASSERT_EQ(someone({"task", "import", "kernelbench", problems()}).code, 0);
  auto x = someone({"task", "import", "kernelbench", problems(), "--json"});
  EXPECT_EQ(x.code, 0);
  EXPECT_EQ(x.document()["imported"], 0);
  EXPECT_EQ(x.document()["unchanged"], 3);
  EXPECT_EQ(x.document()["tasks"][0]["outcome"], "unchanged");
}

TEST(task_import, leaves_what_differs_unless_forced) {
  user someone{"force"};
  ASSERT_EQ(someone({"task", "import", "kernelbench", problems()}).code, 0);
  write_file("force/kernelmill/tasks/kernelbench/level1/1_Exp/prompt.md", "Mine.\n");
  auto x = someone({"task", "import", "kernelbench", problems()});
  EXPECT_EQ(x.code, 4);
  EXPECT_THAT(x.out, HasSubstr("--force"));
  EXPECT_THAT(x.err, HasSubstr("kernelbench/level1/1_Exp"));
  EXPECT_THAT(someone({"task", "show", "kernelbench/level1/1_Exp"}).out, HasSubstr("Mine."));
  x = someone({"task", "import", "kernelbench", problems(), "--force"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("1 replaced"));
}

TEST(task_import, takes_a_level_a_folder_and_the_variable) {
  user someone{"level"};
  someone.home.environment.push_back("KERNELBENCH_ROOT=" + problems());
  auto x = someone({"task", "import", "kernelbench", "--level", "2", "--to", "elsewhere"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("1 task imported"));
  EXPECT_THAT(someone({"task", "list", "--root", "elsewhere"}).out,
              AllOf(HasSubstr("level2/1_Conv_Exp"), Not(HasSubstr("native"))));
  EXPECT_FALSE(std::filesystem::exists(user::data("level")));
}

TEST(task_import, bad_inputs_name_what_is_wrong_and_write_nothing) {
  user someone{"bad"};
  auto file = write_file("broken.jsonl", problem_line(1, 1, "1_Exp") + "{\"level\": 1, \n");
  auto x = someone({"task", "import", "kernelbench", file, "--json"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.fault()["category"], "bad_problem");
  EXPECT_THAT(x.fault()["message"].get<std::string>(), HasSubstr("broken.jsonl, line 2"));
  EXPECT_EQ(someone({"task", "import", "kernelbench", "nowhere"}).code, 3);
  EXPECT_EQ(someone({"task", "import", "kernelbench"}).code, 2);
  EXPECT_EQ(someone({"task", "import", "computeeval", file}).code, 2);
  EXPECT_EQ(someone({"task", "import", "kernelbench", problems(), "--level", "9"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(user::data("bad")));
}

TEST(task_import, a_task_of_torch_asks_for_python_and_takes_no_other_contract) {
  user someone{"python"};
  ASSERT_EQ(someone({"task", "import", "kernelbench", problems()}).code, 0);
  auto answer = write_file("answer.py", "class ModelNew: pass\n");
  auto x = someone({"eval", "--task", "kernelbench/level1/1_Exp", "--backend", "cpu", "--json",
                    "--python", "/nowhere/python3", answer});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.fault()["category"], "python_missing");
  EXPECT_THAT(x.fault()["message"].get<std::string>(), HasSubstr("/nowhere/python3"));
  // A program that runs and has no torch says so in its own words.
  x = someone({"eval", "--task", "kernelbench/level1/1_Exp", "--backend", "cpu", "--json",
               "--python", "/bin/echo", answer});
  EXPECT_EQ(x.fault()["category"], "python_missing");
  x = someone({"eval", "--task", "kernelbench/level1/1_Exp", "--backend", "cpu", "--json",
               "--contract", "native", answer});
  EXPECT_EQ(x.fault()["category"], "unsupported_contract");
  x = someone({"eval", "--task", "native/row_sum", "--backend", "cpu", "--json", "--contract",
               "torch", answer});
  EXPECT_EQ(x.fault()["category"], "unsupported_contract");
}

TEST(task_import, a_run_finds_such_tasks_by_a_glob_and_asks_for_what_they_need) {
  user someone{"run"};
  ASSERT_EQ(someone({"task", "import", "kernelbench", problems()}).code, 0);
  auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"run",
                                   "--json",
                                   "policy.kind=scripted",
                                   "policy.script=" +
                                       source_file("configs/policies/quickstart/script.json"),
                                   "evaluation.backend=cpu",
                                   "run.dir=" + scratch() + "/never"};
    words.insert(words.end(), more.begin(), more.end());
    return someone(words);
  };
  auto x = run({"tasks.ids=[\"kernelbench/level1/*\"]", "evaluation.python=/nowhere/python3"});
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_EQ(x.fault()["category"], "python_missing") << x.err;
  x = run({"tasks.ids=[\"kernelbench/level2/*\"]", "episode.turn_deadline_ms=120000",
           "policy.timeout_ms=20000"});
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err,
              AllOf(HasSubstr("\"config_inconsistent\""), HasSubstr("compile.torch_deadline_ms")));
  // One folder that is named takes the place of both.
  x = run({"tasks.ids=[\"kernelbench/*\"]", "tasks.root=" + source_file("configs/tasks")});
  EXPECT_EQ(x.code, 3);
  EXPECT_THAT(x.err, HasSubstr("\"unknown_task\""));
  EXPECT_FALSE(std::filesystem::exists(scratch() + "/never"));
}

} // namespace task_import_command_test

} // namespace kernelmill::test

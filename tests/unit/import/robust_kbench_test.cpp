// Tasks of robust-kbench's form, written here, become tasks.

#include "launch/import/robust_kbench.hpp"
#include "tests/unit/import/suite_folder.hpp"

namespace kernelmill {
namespace robust_kbench_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string forward =
    "import torch\nimport torch.nn as nn\n\ndef forward_fn(x, weight):\n  return x * weight\n\n"
    "class Model(nn.Module):\n  def __init__(self, n, scale=2.0):\n    super().__init__()\n"
    "    self.weight = nn.Parameter(scale * torch.randn(n))\n"
    "  def forward(self, x, fn=forward_fn):\n    return fn(x, self.weight)\n\n"
    "def get_inputs(rows, n):\n  return [torch.randn(rows, n)]\n";
const std::string backward =
    forward + "\nclass AutogradFunction(torch.autograd.Function):\n  backward_fn = None\n";
const std::string configs =
    "{\"single_input_configs\": [{\"rows\": 4}], \"single_init_configs\": [{}],\n"
    " \"single_shared_configs\": [{\"n\": 8}],\n"
    " \"multi_input_configs\": [{\"rows\": 4}, {\"rows\": 16}],\n"
    " \"multi_init_configs\": [{\"scale\": 0.5}, {}], \"multi_shared_configs\": [{\"n\": 8}]}\n";

class robust_kbench : public test::suite_folder {};

TEST_F(robust_kbench, configurations_are_the_product_that_the_suite_makes) {
  write("tasks/scale/func_forward.py", forward);
  write("tasks/scale/config_forward.json", configs);
  auto reading = read("robust-kbench");
  ASSERT_TRUE(reading) << render(reading.error());
  ASSERT_EQ(reading->tasks.size(), 1u);
  auto x = load(reading->tasks[0]);
  ASSERT_TRUE(x);
  EXPECT_EQ(x->id, "robust-kbench/scale");
  // Rows 4 without a scale is the task's own; the other three of four are variants.
  EXPECT_EQ(x->torch.variants.size(), 3u);
  EXPECT_THAT(
      x->torch.code,
      AllOf(
          HasSubstr(forward),
          HasSubstr("CASES = [\n    {\"inputs\": {\"rows\": 4, \"n\": 8}, \"init\": {\"n\": 8}},"),
          HasSubstr("{\"scale\": 0.5, \"n\": 8}")));
  EXPECT_EQ(document_of(reading->tasks[0])["tolerance"]["absolute"], 1e-5);
}

TEST_F(robust_kbench, a_backward_function_is_a_task_of_its_own) {
  for (const std::string direction : {"forward", "backward"}) {
    write("tasks/scale/func_" + direction + ".py", backward);
    write("tasks/scale/config_" + direction + ".json", configs);
  }
  auto reading = read("robust-kbench");
  ASSERT_TRUE(reading) << render(reading.error());
  ASSERT_EQ(reading->tasks.size(), 2u);
  auto x = load(reading->tasks[1]);
  ASSERT_TRUE(x);
  EXPECT_EQ(x->id, "robust-kbench/scale_backward");
  EXPECT_THAT(x->torch.code, HasSubstr("torch.autograd.grad"));
  auto answer = robust_kbench_answer(x->torch.code, "// \"forward\"\n");
  EXPECT_THAT(answer, AllOf(HasSubstr("class ModelNew"), HasSubstr("_module.backward"),
                            HasSubstr("\"// \\\"forward\\\"\\n\""), Not(HasSubstr("CASES"))));
  answer = robust_kbench_answer(file_of(reading->tasks[0], "problem.py"), "");
  EXPECT_THAT(answer, AllOf(HasSubstr("fn=_module.forward"), Not(HasSubstr("autograd.grad"))));
}

TEST_F(robust_kbench, one_folder_and_folders_of_levels_are_read) {
  write("tasks/kernelbench/level_1/task_1/func_forward.py", forward);
  write("tasks/kernelbench/level_1/task_1/config_forward.json", configs);
  auto reading = read("robust-kbench", {{"--shapes", "1"}});
  ASSERT_TRUE(reading) << render(reading.error());
  EXPECT_EQ(reading->tasks.at(0).id, "robust-kbench/kernelbench/level_1/task_1");
  EXPECT_FALSE(document_of(reading->tasks[0]).contains("variants"));
  auto one = read_robust_kbench(root_ + "/suite/tasks/kernelbench/level_1/task_1/", {});
  ASSERT_TRUE(one) << render(one.error());
  EXPECT_EQ(one->tasks.at(0).id, "robust-kbench/task_1");
}

TEST_F(robust_kbench, hostile_folders_are_refused_one_by_one) {
  auto task = [&](const std::string& name, const std::string& code, const std::string& config) {
    write("tasks/" + name + "/func_forward.py", code);
    if (!config.empty()) write("tasks/" + name + "/config_forward.json", config);
  };
  task("good", forward, configs);
  task("a b", forward, configs);
  task("bytes", forward + "# \xc0\x80\n", configs);
  task("long", forward + std::string(600 << 10, '#'), configs);
  task("nothing", "import torch\n", configs);
  task("no_config", forward, "");
  task("no_json", forward, "{\"single_input_configs\": ");
  task("deep", forward, std::string(100000, '['));
  task("wrong", forward, "{\"single_input_configs\": 3}");
  task("nested", forward,
       "{\"single_input_configs\": [{\"rows\": {\"a\": 1}}], \"single_init_configs\": [{}], "
       "\"single_shared_configs\": [{}]}");
  task("linked", forward, "");
  std::filesystem::create_symlink("/etc/passwd", root_ + "/suite/tasks/linked/config_forward.json");
  std::filesystem::create_directory_symlink(root_ + "/suite/tasks", root_ + "/suite/tasks/loop");
  auto reading = read("robust-kbench");
  ASSERT_TRUE(reading) << render(reading.error());
  EXPECT_EQ(reading->tasks.size(), 1u);
  EXPECT_EQ(reading->refused.size(), 10u);
  auto fate = [&](const std::string& name) { return fate_of(*reading, name); };
  EXPECT_EQ(fate("good"), "imported");
  EXPECT_THAT(fate("a b"), HasSubstr("name"));
  EXPECT_THAT(fate("bytes"), HasSubstr("UTF-8"));
  EXPECT_THAT(fate("long"), HasSubstr("512 KiB"));
  EXPECT_THAT(fate("nothing"), HasSubstr("it lacks def forward_fn"));
  EXPECT_THAT(fate("no_config"), HasSubstr("configurations are missing"));
  EXPECT_THAT(fate("no_json"), HasSubstr("no JSON"));
  EXPECT_THAT(fate("deep"), HasSubstr("no JSON"));
  EXPECT_THAT(fate("wrong"), HasSubstr("plain values"));
  EXPECT_THAT(fate("nested"), HasSubstr("plain values"));
  EXPECT_THAT(fate("linked"), HasSubstr("configurations are missing"));
}

TEST_F(robust_kbench, a_folder_without_tasks_is_an_error) {
  EXPECT_EQ(read("robust-kbench").error().category, "missing_file");
  EXPECT_EQ(read("robust-kbench", {{"--shapes", "x"}}).error().category, "usage");
}

} // namespace robust_kbench_test
} // namespace kernelmill

// A run of a task of the contract `torch` on a CPU, as a user has it: run, kill -9, resume, report,
// eval. It needs a Python that has torch, and skips without.

#include <filesystem>
#include <fstream>

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/machine/python.hpp"
#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace torch_run_test {

using testing::HasSubstr;

const char* const problem = R"(
import torch


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))

    def forward(self, x):
        return torch.relu(x * self.weight)


def get_inputs():
    return [torch.rand(64, 64)]


def get_init_inputs():
    return [64]
)";

std::string answer(const std::string& last) {
  return "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, n):\n"
         "        super().__init__()\n        self.weight = torch.nn.Parameter(torch.randn(n))\n\n"
         "    def forward(self, x):\n        return " +
         last + "\n";
}

/// Of a run's totals what its turns decide: how many of them a machine has time to time, it decides
/// anew each time.
nlohmann::json without_timing(nlohmann::json totals) {
  for (const auto* key : {"not_timed", "unpaid"}) totals.erase(key);
  return totals;
}

class torch_run : public testing::Test {
protected:
  void SetUp() override {
    auto found = find_python("");
    if (!found) GTEST_SKIP() << render(found.error());
    python_ = "evaluation.python=" + found->path;
    add_task("torch_tasks", "7_Scaled", 7, problem);
    write_file("right.py", answer("torch.relu(x * self.weight)"));
    write_file("wrong.py", answer("x * self.weight"));
    const std::string replies = R"("model": "scripted", "replies": [
      {"task": "kernelbench/level1/6_Broken", "thought": "e", "kernel": "right.py"},
      {"task": "kernelbench/level1/7_Scaled", "member": 0, "turn": 0, "thought": "a", "kernel": "wrong.py"},
      {"task": "kernelbench/level1/7_Scaled", "member": 0, "turn": 1, "thought": "b", "kernel": "right.py"},
      {"task": "kernelbench/level1/7_Scaled", "member": 1, "turn": 0, "thought": "c", "kernel": "wrong.py"},
      {"task": "kernelbench/level1/7_Scaled", "member": 1, "turn": 1, "thought": "d", "kernel": "wrong.py"}]})";
    write_file("script.json", "{" + replies);
    write_file("slow.json", R"({"latency_ms": 4000, )" + replies);
    write_file("torch.json",
               R"({"tasks": {"root": "torch_tasks", "ids": ["*"], "group_size": 2, "max_turns": 2},
      "policy": {"kind": "scripted", "script": "script.json", "model": "scripted"},
      "retrieval": {"enabled": false}, "profile": {"enabled": false},
      "evaluation": {"backend": "cpu", "contract": "torch", "timing": {"half_width": 0.2}}})");
  }

  static void add_task(const std::string& root, const std::string& name, int number,
                       const std::string& source) {
    auto folder = scratch() + "/" + root + "/kernelbench/level1/" + name;
    std::filesystem::create_directories(folder);
    std::ofstream{folder + "/problem.py"} << source;
    std::ofstream{folder + "/prompt.md"} << "Make it fast.\n";
    std::ofstream{folder + "/task.json"}
        << R"({"id": "kernelbench/level1/)" + name + R"(", "title": ")" + name +
               R"(", "verb": "optimize", "operator_family": "activation", "contract": "torch",
               "difficulty": "easy", "backends": ["cpu"], "suite": "kernelbench", "level": 1,
               "problem_id": )" +
               std::to_string(number) + "}";
  }

  program_result run(const std::string& name) {
    return kernelmill(
        {"run", "torch.json", python_, "run.dir=" + name, "run.name=" + name, "--json"});
  }

  std::string python_;
};

TEST_F(torch_run, judges_repairs_and_reports) {
  auto x = run("torch_one");
  ASSERT_EQ(x.code, 0) << x.err;
  auto totals = x.document()["totals"];
  EXPECT_EQ(totals["accepted"], 1) << x.out;
  EXPECT_EQ(totals["rejected"], 1);
  auto turn = kernelmill({"show", "torch_one/g0.e0.t0", "--json"});
  EXPECT_THAT(turn.out, HasSubstr("wrong_result"));
  auto report = kernelmill({"report", "torch_one", "--json"});
  ASSERT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("level 1"));

  // Killed in the middle, it goes on where it was.
  running_program killed{{"run", "torch.json", python_, "policy.script=slow.json",
                          "run.dir=torch_two", "run.name=torch_two"}};
  killed.wait_for_error("0/2 episodes");
  EXPECT_EQ(killed.stop(SIGKILL).code, 128 + SIGKILL);
  auto resumed = kernelmill({"resume", "torch_two", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(without_timing(resumed.document()["totals"]), without_timing(totals));
}

TEST_F(torch_run, goes_on_without_a_problem_that_cannot_be_judged) {
  add_task("mixed_tasks", "7_Scaled", 7, problem);
  add_task("mixed_tasks", "6_Broken", 6,
           "import torch\n\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n"
           "        raise ValueError('no weights')\n\n\ndef get_inputs():\n    return "
           "[torch.rand(4)]\n\n\ndef get_init_inputs():\n    return []\n");
  auto x = kernelmill({"run", "torch.json", python_, "tasks.root=mixed_tasks", "run.dir=mixed",
                       "run.name=mixed", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto totals = x.document()["totals"];
  EXPECT_EQ(totals["accepted"], 1) << x.out;
  EXPECT_EQ(totals["rejected"], 1);
  EXPECT_EQ(totals["infrastructure"], 2);
  auto turn = kernelmill({"show", "mixed/g0.e0.t0", "--json"});
  EXPECT_THAT(turn.out, HasSubstr("no weights"));
}

} // namespace torch_run_test

} // namespace kernelmill::test

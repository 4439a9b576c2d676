#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace index_audit_test {

using ::testing::HasSubstr;

const char* const problem = "import torch\nimport torch.nn as nn\n\n"
                            "class Model(nn.Module):\n"
                            "    def __init__(self, i, o):\n"
                            "        super().__init__()\n"
                            "        self.fc = nn.Linear(i, o)\n\n"
                            "    def forward(self, x):\n"
                            "        return torch.relu(self.fc(x))\n\n"
                            "def get_inputs():\n    return [torch.rand(16, 64)]\n\n"
                            "def get_init_inputs():\n    return [64, 32]\n";
const char* const its_function = "import torch.nn.functional as F\nimport torch\n"
                                 "def module_fn(a, w, b):\n    return F.linear(a, w, b).relu()\n";

nlohmann::json kernel(const std::string& id, const std::string& reference,
                      const std::string& source) {
  return {{"kind", "kernel"},   {"id", id},         {"task", "corpus/" + id},
          {"backend", "cuda"},  {"speedup", 2.0},   {"language", "cuda"},
          {"origin", "corpus"}, {"hidden", false},  {"rights_source", "own"},
          {"split", "train"},   {"source", source}, {"reference", reference}};
}

/// An index with one card and two kernels, one of which solves the problem.
std::string planted_index() {
  auto directory = scratch() + "/audited", cards = scratch() + "/audited_corpus";
  EXPECT_EQ(run_program({"/bin/mkdir", "-p", cards}).code, 0);
  write_file("audited_corpus/one.md",
             "---\nid: one\ntitle: About one\nkind: operator\noperator_family: reduction\n"
             "backends: cpu\ntags: test\n---\nAdvice.\n");
  EXPECT_EQ(kernelmill({"index", "build", directory, "--from", "cards=" + cards}).code, 0);
  std::ofstream lines{directory + "/live.jsonl"};
  lines << kernel("1", its_function, "__global__ void fused(float* x) { x[0] = spread(x[1]); }")
        << "\n"
        << kernel(
               "2", "import torch\ndef f(x):\n    return torch.cumsum(x, 1)\n",
               "__global__ void scan(float* x, int n) { for (int i = 1; i < n; ++i) x[i] += 3; }")
        << "\n";
  return directory;
}

TEST(index_audit, a_planted_leak_is_withheld_and_found_without_the_guard) {
  auto directory = planted_index();
  auto line =
      nlohmann::json{{"level", 1}, {"problem_id", 7}, {"name", "7_Gemm_ReLU"}, {"code", problem}};
  auto problems = write_file("audit.jsonl", line.dump() + "\n");
  auto tasks = scratch() + "/audited_tasks";
  ASSERT_EQ(run_program({"/bin/mkdir", "-p", tasks}).code, 0);
  std::vector<std::string> words = {"index", "audit",      "--json", "--root",
                                    tasks,   "--problems", problems, directory};
  auto guarded = kernelmill(words);
  ASSERT_EQ(guarded.code, 0) << guarded.err << guarded.out;
  auto document = guarded.document();
  EXPECT_EQ(document["problems"], 1);
  EXPECT_EQ(document["kernels"], 2);
  EXPECT_EQ(document["sources"][0]["origin"], "corpus");
  EXPECT_EQ(document["splits"]["train"], 2);
  EXPECT_EQ(document["duplicates"]["exact"], 0);
  EXPECT_TRUE(document["leaks"].empty());
  words.push_back("--unguarded");
  auto open = kernelmill(words);
  EXPECT_EQ(open.code, 5) << open.err;
  auto leaks = open.document()["leaks"];
  auto found = std::find_if(leaks.begin(), leaks.end(),
                            [](const auto& x) { return x["entry"] == "kernel:1"; });
  if (found != leaks.end()) {
    EXPECT_EQ((*found)["task"], "kernelbench/level1/7_Gemm_ReLU");
    EXPECT_EQ((*found)["why"], "operators");
  } else {
    ADD_FAILURE() << open.out;
  }
}

TEST(index_audit, the_cards_of_the_installation_give_no_task_away) {
  auto directory = scratch() + "/audited_cards";
  ASSERT_EQ(kernelmill({"index", "build", directory}).code, 0);
  auto audit = kernelmill({"index", "audit", directory});
  EXPECT_EQ(audit.code, 0) << audit.out;
  EXPECT_THAT(audit.out, HasSubstr("leaks: 0 among"));
}

TEST(index_audit, an_index_or_problems_that_are_not_there_are_named) {
  EXPECT_EQ(kernelmill({"index", "audit", "nowhere"}).code, 3);
  auto directory = scratch() + "/audited_cards_2";
  ASSERT_EQ(kernelmill({"index", "build", directory}).code, 0);
  EXPECT_NE(kernelmill({"index", "audit", "--problems", "nowhere.jsonl", directory}).code, 0);
}

} // namespace index_audit_test
} // namespace kernelmill::test

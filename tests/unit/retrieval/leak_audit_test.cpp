#include "retrieval/search/leak_audit.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "retrieval/code/reference_code.hpp"
#include "retrieval/search/hashed_lexical_embedder.hpp"
#include "tests/unit/retrieval/planted_leaks.hpp"
#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {
namespace leak_audit_test {

using test::leak_kinds;
using test::planted;
using test::problem_text;

std::string module_of(const std::string& init, const std::string& forward,
                      const std::string& arguments, const std::string& given) {
  return "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
         "class Model(nn.Module):\n    \"\"\"A problem.\"\"\"\n    def __init__(self" +
         (arguments.empty() ? "" : ", " + arguments) +
         "):\n        super(Model, self).__init__()\n        " + init +
         "\n\n    def forward(self, x):\n        " + forward +
         "\n        return x\n\nbatch_size = 16\n\ndef get_inputs():\n"
         "    return [torch.rand(batch_size, 64, 32, 32)]\n\ndef get_init_inputs():\n    return [" +
         given + "]\n";
}

std::string function_of(const std::string& parameters, const std::string& body) {
  return "import torch\nimport torch.nn.functional as F\n\ndef module_fn(" + parameters +
         "):\n    " + body + "\n";
}

/// A problem and the same as a function.
struct pair_of_forms {
  problem_text module;
  std::string function;
};

const std::vector<pair_of_forms>& pairs() {
  static const std::vector<pair_of_forms> result = {
      {{"1_Odd_ReLU", module_of("self.act = nn.ReLU()", "x = self.act(x)", "", "")},
       function_of("a", "return torch.relu(a)")},
      {{"2_Gemm_Swish_Scale",
        module_of("self.fc = nn.Linear(i, o)",
                  "x = self.fc(x)\n        x = torch.sigmoid(x) * x\n        x = x * 2.0", "i, o",
                  "64, 128")},
       function_of("a, w, b", "a = F.linear(a, w, b)\n    return F.silu(a).mul(2.0)")},
      {{"3_Conv_Pool_Softmax",
        module_of("self.conv = nn.Conv2d(i, o, k, stride=2, padding=1)\n"
                  "        self.pool = nn.MaxPool2d(2)",
                  "x = self.pool(self.conv(x))\n        x = torch.softmax(x, dim=1)", "i, o, k",
                  "64, 128, 3")},
       function_of("a, weight, bias", "a = F.conv2d(a, weight, bias, stride=2, padding=(1, 1))\n"
                                      "    return F.softmax(F.max_pool2d(a, 2), 1)")},
      {{"4_Sum_LogSumExp",
        module_of("pass", "x = torch.sum(x, dim=2)\n        x = torch.logsumexp(x, 1)", "", "")},
       function_of("t", "return t.sum(2).logsumexp(dim=1)")},
      {{"5_Linear_Mish_GroupNorm",
        module_of("self.fc = nn.Linear(i, o)\n        self.norm = nn.GroupNorm(8, o)",
                  "x = F.mish(self.fc(x))\n        x = self.norm(x)", "i, o", "64, 128")},
       function_of("t, w, b, g, h",
                   "t = torch.addmm(b, t, w.t())\n    t = t * torch.tanh(F.softplus(t))\n"
                   "    return F.group_norm(t, 8, g, h)")}};
  return result;
}

std::vector<problem_text> hand_written() {
  std::vector<problem_text> result;
  for (const auto& x : pairs()) result.push_back(x.module);
  return result;
}

kernel_example functional(const pair_of_forms& x) {
  auto result = planted(x.module, "language");
  result.id = "functional:" + x.module.name;
  result.source = test::made_up_kernel(result.id);
  result.reference = x.function;
  return result;
}

std::vector<kernel_example> corpus_of(const std::vector<problem_text>& problems) {
  std::vector<kernel_example> result;
  for (const auto& x : problems)
    for (const auto& kind : leak_kinds()) result.push_back(planted(x, kind));
  return result;
}

std::vector<audit_problem> asked(const std::vector<problem_text>& problems) {
  std::vector<audit_problem> result;
  for (const auto& x : problems) result.push_back({"suite/level1/" + x.name, {}, x.code, {}});
  return result;
}

loaded_index index_of(const std::vector<kernel_example>& kernels) {
  test::temporary_folder cards;
  cards.write("a.md", test::card_text("a", "Advice."));
  auto index =
      loaded_index::in_memory(cards.path(), kernels, std::make_shared<hashed_lexical_embedder>());
  EXPECT_TRUE(index) << test::failure(index);
  return std::move(*index);
}

bool is_withheld(const problem_text& problem, const kernel_example& x) {
  leak_guard guard;
  auto shingles = shingles_of(x.source);
  return guard.withholds(asking("suite/level1/" + problem.name, problem.code),
                         {x.task, x.reference, read_reference(x.reference).signature, x.source,
                          read_reference(x.source).signature, &shingles});
}

TEST(LeakAudit, NormalFormsAreEqualForCopiesAlone) {
  for (const auto& x : hand_written()) {
    auto form = normal_form(x.code);
    EXPECT_FALSE(form.empty());
    EXPECT_EQ(form, normal_form(test::renamed(x.code, "Odd"))) << test::renamed(x.code, "Odd");
    EXPECT_EQ(form, normal_form(test::reformatted(x.code))) << test::reformatted(x.code);
    EXPECT_EQ(form, normal_form(test::resized(x.code))) << test::resized(x.code);
    for (const auto& other : hand_written())
      EXPECT_EQ(form == normal_form(other.code), x.name == other.name) << other.name;
  }
  EXPECT_EQ(normal_form("int f() { return 1; }"), "");
}

TEST(LeakAudit, EveryKindOfPlantedLeakIsWithheld) {
  for (const auto& x : pairs()) {
    for (const auto& kind : leak_kinds())
      EXPECT_TRUE(is_withheld(x.module, planted(x.module, kind))) << kind << " " << x.module.name;
    EXPECT_TRUE(is_withheld(x.module, functional(x))) << x.module.name;
    for (const auto& other : pairs()) {
      if (other.module.name == x.module.name) continue;
      EXPECT_FALSE(is_withheld(x.module, functional(other))) << other.module.name;
      for (const auto& kind : leak_kinds())
        EXPECT_FALSE(is_withheld(x.module, planted(other.module, kind))) << other.module.name;
    }
  }
}

TEST(LeakAudit, AnUnguardedIndexLeaksEveryKindAndAGuardedOneNone) {
  auto kernels = corpus_of(hand_written());
  for (const auto& x : pairs()) kernels.push_back(functional(x));
  auto index = index_of(kernels);
  auto problems = asked(hand_written());
  auto open = audit_leaks(index, problems, false, max_results);
  ASSERT_TRUE(open) << test::failure(open);
  std::set<std::string> kinds;
  for (const auto& x : open->leaks) {
    kinds.insert(x.entry.substr(7, x.entry.find(':', 7) - 7)); // behind "kernel:"
    EXPECT_EQ(x.entry.substr(x.entry.rfind(':') + 1), x.task.substr(x.task.rfind('/') + 1));
  }
  for (const auto& kind : leak_kinds()) EXPECT_TRUE(kinds.contains(kind)) << kind;
  EXPECT_TRUE(kinds.contains("functional"));
  auto guarded = audit_leaks(index, problems, true, max_results);
  ASSERT_TRUE(guarded) << test::failure(guarded);
  EXPECT_TRUE(guarded->leaks.empty());
  EXPECT_GT(guarded->results, 0U);
  EXPECT_GT(guarded->withheld, 0U);
}

TEST(LeakAudit, ACardThatHoldsAKnownSolutionIsFound) {
  test::temporary_folder cards;
  cards.write("a.md", test::card_text("a", test::row_sum_renamed));
  auto index =
      loaded_index::in_memory(cards.path(), {}, std::make_shared<hashed_lexical_embedder>());
  ASSERT_TRUE(index) << test::failure(index);
  std::vector<audit_problem> problems = {
      {"native/row_sum", "sum of rows", "", {test::row_sum_kernel}}};
  auto report = audit_leaks(*index, problems);
  ASSERT_TRUE(report) << test::failure(report);
  ASSERT_EQ(report->leaks.size(), 1U) << "nothing told the guard of it";
  EXPECT_EQ(report->leaks[0].why, "solution");
  index->guard().add_solution("native/row_sum", test::row_sum_kernel);
  EXPECT_TRUE(audit_leaks(*index, problems)->leaks.empty());
}

TEST(LeakAudit, DuplicatesAreCounted) {
  auto make = [](const std::string& id, const std::string& source) {
    kernel_example x;
    x.id = id;
    x.task = "t/" + id;
    x.source = source;
    return x;
  };
  auto index = index_of({make("1", test::row_sum_kernel), make("2", test::row_sum_kernel),
                         make("3", test::row_sum_renamed), make("4", test::row_max_kernel)});
  auto count = count_duplicates(index);
  EXPECT_EQ(count.exact, 1U);
  EXPECT_EQ(count.near, 1U);
}

// -- all of KernelBench: KERNELMILL_KERNELBENCH names its problems.jsonl
// ---------------------------

std::vector<problem_text> kernelbench() {
  const char* path = std::getenv("KERNELMILL_KERNELBENCH");
  std::vector<problem_text> result;
  if (!path) return result;
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    auto row = nlohmann::json::parse(line);
    result.push_back({row["name"].get<std::string>(), row["code"].get<std::string>()});
  }
  EXPECT_EQ(result.size(), 270U) << path;
  return result;
}

TEST(LeakAudit, EveryProblemOfKernelBenchIsKeptFromItsCopies) {
  auto problems = kernelbench();
  if (problems.empty()) GTEST_SKIP() << "KERNELMILL_KERNELBENCH names no problems.jsonl";
  std::map<std::string, size_t> missed;
  for (const auto& x : problems)
    for (const auto& kind : leak_kinds())
      if (!is_withheld(x, planted(x, kind))) {
        ++missed[kind];
        ADD_FAILURE() << kind << " of " << x.name << " is shown";
      }
  auto index = index_of(corpus_of(problems));
  for (const auto& x : problems) {
    retrieval_query query;
    query.text = query.reference = x.code;
    query.count = 20;
    query.exclude_task = "suite/level1/" + x.name;
    auto answer = index.query(query);
    ASSERT_TRUE(answer) << test::failure(answer);
    EXPECT_EQ(answer->results.size(), 20U) << x.name;
    for (const auto& hit : answer->results)
      EXPECT_FALSE(hit.entry.id.ends_with(":" + x.name)) << hit.entry.id;
  }
  auto report = audit_leaks(index, asked(problems));
  ASSERT_TRUE(report) << test::failure(report);
  for (const auto& x : report->leaks)
    ADD_FAILURE() << x.task << " is shown " << x.entry << " (" << x.why << ")";
}

TEST(LeakAudit, FewOtherProblemsOfKernelBenchAreWithheld) {
  auto problems = kernelbench();
  if (problems.empty()) GTEST_SKIP() << "KERNELMILL_KERNELBENCH names no problems.jsonl";
  // Each is read once: between two that were recognized the guard compares signatures alone.
  std::vector<std::string> signatures;
  for (const auto& x : problems) {
    signatures.push_back(asking("suite/level1/" + x.name, x.code).signature);
    ASSERT_FALSE(signatures.back().empty()) << x.name;
  }
  size_t pairs = 0, asking_problems = 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    size_t own = 0;
    for (size_t j = 0; j < problems.size(); ++j)
      own += i != j && nearly_same_computation(signatures[i], signatures[j]);
    pairs += own;
    asking_problems += own > 0;
  }
  RecordProperty("withheld_pairs", std::to_string(pairs));
  RecordProperty("problems_with_any", std::to_string(asking_problems));
  EXPECT_LE(pairs, 200U) << "of 72,630";
  EXPECT_LE(asking_problems, 70U);
}

} // namespace leak_audit_test
} // namespace kernelmill

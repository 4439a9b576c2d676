// Tasks of the contract `torch`: a problem in Python in place of signature, cases and reference.

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/task.hpp"
#include "messages/base/json_value.hpp"

using namespace kernelmill;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

namespace torch_task_test {

constexpr const char* problem = "import torch\n\n\nclass Model(torch.nn.Module):\n"
                                "    def forward(self, x):\n        return x.exp()\n\n\n"
                                "def get_inputs():\n    return [torch.rand(4)]\n\n\n"
                                "def get_init_inputs():\n    return []\n";

json relu() {
  return {{"id", "suite/level1/1_Exp"},
          {"title", "Exp"},
          {"verb", "optimize"},
          {"operator_family", "elementwise"},
          {"contract", "torch"},
          {"difficulty", "easy"},
          {"suite", "suite"},
          {"level", 1},
          {"problem_id", 7},
          {"precision", "fp32"}};
}

class torch_task : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernelmill-torch-task-XXXXXX";
    root_ = ::mkdtemp(name.data());
    write("task.json", relu().dump());
    write("prompt.md", "Make it fast.\n");
    write("problem.py", problem);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text,
             const std::string& id = "suite/level1/1_Exp") {
    std::filesystem::create_directories(root_ + "/" + id);
    std::ofstream{root_ + "/" + id + "/" + name} << text;
  }
  expected<task> load() {
    auto x = load_task(root_, "suite/level1/1_Exp");
    KM_TRY(x);
    return **x;
  }
  std::string trouble(const json& document) {
    write("task.json", document.dump());
    auto x = load();
    return x ? std::string{} : render(x.error());
  }

  std::string root_;
};

TEST_F(torch_task, needs_no_signature_and_no_cases) {
  auto x = load();
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_TRUE(x->contract == contract_kind::torch);
  EXPECT_EQ(x->torch.suite, "suite");
  EXPECT_EQ(x->torch.level, 1u);
  EXPECT_EQ(x->torch.problem_id, 7u);
  EXPECT_EQ(x->torch.code, problem);
  EXPECT_EQ(x->prompt, "Make it fast.\n");
  EXPECT_THAT(x->backends, ElementsAre("cpu", "cuda"));
  EXPECT_EQ(x->terms.language, "any");
  EXPECT_TRUE(x->cases.empty());
}

TEST_F(torch_task, the_digest_covers_each_of_its_files) {
  std::set<std::string> digests{load()->digest};
  write("prompt.md", "Make it faster.\n");
  digests.insert(load()->digest);
  write("problem.py", std::string{problem} + "# another\n");
  digests.insert(load()->digest);
  auto document = relu();
  document["difficulty"] = "hard";
  write("task.json", document.dump());
  digests.insert(load()->digest);
  EXPECT_EQ(digests.size(), 4u);
}

TEST_F(torch_task, answers_may_be_a_function) {
  auto document = relu();
  document["entry"] = {{"function", "run"}};
  EXPECT_EQ(trouble(document), "");
  EXPECT_EQ(load()->torch.entry.text(), "run:arguments");
  document["entry"]["takes"] = "tuple";
  EXPECT_EQ(trouble(document), "");
  EXPECT_EQ(load()->torch.entry.text(), "run:tuple");
  for (const json& wrong :
       {json("run"), json::object(), json{{"function", "1st"}}, json{{"function", "class"}},
        json{{"function", "ModelNew"}}, json{{"function", "a.b"}}, json{{"function", 7}},
        json{{"function", "run"}, {"takes", "list"}},
        json{{"function", "run"}, {"take", "tuple"}}}) {
    document["entry"] = wrong;
    EXPECT_THAT(trouble(document), HasSubstr("entry")) << wrong;
  }
  EXPECT_THAT(trouble(document), HasSubstr("did you mean \"takes\"?"));
}

TEST_F(torch_task, the_rule_of_a_suite_may_hold_for_all_shapes_or_for_one) {
  auto document = relu();
  document["tolerance"] = {{"absolute", 1e-2}, {"relative", 0}, {"matched", 0.95}, {"largest", 10}};
  write("problem.py", std::string{"rows = 4\n"} + problem);
  document["variants"] = {{{"name", "more"}, {"set", {{"rows", 8}}}},
                          {{"name", "most"},
                           {"set", {{"rows", 9}}},
                           {"tolerance", {{"absolute", 1}, {"relative", 0.5}}}}};
  ASSERT_EQ(trouble(document), "");
  auto x = load()->torch;
  ASSERT_TRUE(x.tolerance);
  EXPECT_EQ(x.tolerance->absolute, 1e-2);
  EXPECT_EQ(x.tolerance->matched, 0.95);
  EXPECT_EQ(x.tolerance->largest, 10.0);
  EXPECT_FALSE(x.variants[0].tolerance);
  ASSERT_TRUE(x.variants[1].tolerance);
  EXPECT_EQ(x.variants[1].tolerance->relative, 0.5);
  EXPECT_EQ(x.variants[1].tolerance->matched, 1.0);
  EXPECT_FALSE(x.variants[1].tolerance->largest);
  for (const json& wrong :
       {json(4), json::object(), json{{"absolute", 1}}, json{{"absolute", -1}, {"relative", 0}},
        json{{"absolute", "1"}, {"relative", 0}}, json{{"absolute", 1e300}, {"relative", 0}},
        json{{"absolute", 1}, {"relative", 0}, {"matched", 0}},
        json{{"absolute", 1}, {"relative", 0}, {"matched", 1.01}},
        json{{"absolute", 1}, {"relative", 0}, {"largest", 0}},
        json{{"absolute", 1}, {"relative", 0}, {"match", 1}}}) {
    document["variants"][1]["tolerance"] = wrong;
    EXPECT_THAT(trouble(document), HasSubstr("variants[1].tolerance")) << wrong;
  }
}

TEST_F(torch_task, the_rule_of_a_suite_is_asked_only_of_tasks_that_have_one) {
  judging_terms terms;
  terms.mode = "suite";
  auto without = on_terms(*load(), terms);
  ASSERT_FALSE(without);
  EXPECT_THAT(render(without.error()),
              testing::AllOf(HasSubstr("suite/level1/1_Exp"), HasSubstr("has no tolerance")));
  auto document = relu();
  document["tolerance"] = {{"absolute", 1e-2}, {"relative", 1e-2}};
  ASSERT_EQ(trouble(document), "");
  EXPECT_TRUE(on_terms(*load(), terms));
}

TEST_F(torch_task, tensors_may_keep_their_own_types) {
  for (const std::string precision : {"fp32", "fp16", "bf16", "own"}) {
    auto document = relu();
    document["precision"] = precision;
    EXPECT_EQ(trouble(document), "");
    EXPECT_EQ(load()->torch.precision, precision);
  }
  EXPECT_EQ(precision_of_problem(problem), "fp32");
  for (const char* call : {".to(torch.bfloat16)", ".half()", ", dtype=torch.float16", ".double()",
                           ".to(torch.float8_e4m3fn)"}) {
    auto code = std::string{problem};
    code.replace(code.find("torch.rand(4)"), 13, "torch.rand(4)" + std::string{call});
    EXPECT_EQ(precision_of_problem(code), "own") << call;
  }
}

TEST_F(torch_task, verbs_that_begin_with_code_have_a_starter_in_python) {
  std::set<std::string> digests;
  for (const std::string verb : {"debug", "diagnose", "reformulate", "port"}) {
    std::filesystem::remove(root_ + "/suite/level1/1_Exp/starter.py");
    auto document = relu();
    document["verb"] = verb;
    if (verb == "diagnose") {
      document["diagnoses"] = {"slow", "slower"};
      document["diagnosis"] = "slow";
    }
    if (verb == "port") {
      document["port"] = {{"from", "triton"}, {"to", "cuda"}};
      document["backends"] = {"cuda"};
    }
    EXPECT_THAT(trouble(document), HasSubstr("verb \"" + verb + "\" needs a starter.py")) << verb;
    write("starter.py", "class ModelNew: ...\n");
    EXPECT_EQ(trouble(document), "") << verb;
    EXPECT_EQ(load()->starter, "class ModelNew: ...\n") << verb;
    auto digest = load()->digest;
    write("starter.py", "class ModelNew: pass\n");
    EXPECT_NE(load()->digest, digest) << verb;
    digests.insert(digest);
  }
  EXPECT_EQ(digests.size(), 4u);
  auto document = relu();
  document["verb"] = "synthesize";
  EXPECT_THAT(trouble(document), HasSubstr("verb \"synthesize\" takes no starter"));
  std::filesystem::remove(root_ + "/suite/level1/1_Exp/starter.py");
  EXPECT_EQ(trouble(document), "");
}

TEST_F(torch_task, a_language_that_it_asks_for_is_that_of_its_terms) {
  auto document = relu();
  document["language"] = "triton";
  EXPECT_THAT(trouble(document), HasSubstr("backends names cpu, and answers are in triton"));
  document["backends"] = {"cuda"};
  ASSERT_EQ(trouble(document), "");
  EXPECT_EQ(load()->terms.language, "triton");
  judging_terms terms;
  terms.backend = "cuda";
  terms.language = "triton";
  EXPECT_TRUE(on_terms(*load(), terms));
  terms.language = "cuda";
  auto refused = on_terms(*load(), terms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().category, "config_inconsistent");
  EXPECT_EQ(refused.error().cls, fault_class::configuration);
  document["language"] = "rust";
  EXPECT_THAT(trouble(document), HasSubstr("language is \"rust\""));
}

TEST_F(torch_task, a_port_asks_for_the_language_that_it_leads_to) {
  auto document = relu();
  document["verb"] = "port";
  document["backends"] = {"cuda"};
  write("starter.py", "class ModelNew: ...\n");
  EXPECT_THAT(trouble(document), HasSubstr("port is missing"));
  document["port"] = {{"from", "cuda"}, {"to", "triton"}};
  ASSERT_EQ(trouble(document), "");
  EXPECT_EQ(load()->terms.language, "triton");
  document["language"] = "cuda";
  EXPECT_THAT(trouble(document), HasSubstr("language is not port.to, triton"));
  document.erase("language");
  document["port"]["to"] = "cuda";
  EXPECT_THAT(trouble(document), HasSubstr("port.to is the language of port.from"));
  document["port"]["to"] = "hip";
  EXPECT_THAT(trouble(document), HasSubstr("port.to is \"hip\""));
  document["port"]["to"] = "triton";
  document["port"]["form"] = "cuda";
  EXPECT_THAT(trouble(document), HasSubstr("unknown key \"port.form\""));
}

TEST(interface_of_problem, tells_the_inputs_and_not_what_is_computed) {
  auto told = interface_of_problem(R"("""Scaled exp.

rows = 7
"""
import torch
import torch.nn as nn

scale = 3  # of the secret
rows, cols = 4, 8
SHAPE = (
    rows,
    cols,
)


def drawn(shape):
    return torch.randn(shape)


def secret(x):
    return x.exp() * scale


class Model(nn.Module):
    """It computes exp."""

    def __init__(self, width: int,
                 bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return secret(x) * self.weight


def get_inputs():
    return [drawn(SHAPE)]


def get_init_inputs():
    return [cols]
)");
  EXPECT_EQ(told, R"(rows, cols = 4, 8
SHAPE = (
    rows,
    cols,
)

def drawn(shape):
    return torch.randn(shape)

def get_inputs():
    return [drawn(SHAPE)]

def get_init_inputs():
    return [cols]

class Model(nn.Module):
    def __init__(self, width: int,
                 bias=True): ...
    def forward(self, x): ...
)");
}

TEST_F(torch_task, names_variants_with_other_constants) {
  write("problem.py", "rows = 4\nh, w = (8, 8)\nbias: bool = True\n" + std::string{problem});
  auto document = relu();
  document["variants"] = json::parse(R"([
    {"name": "wide", "set": {"rows": 1, "w": 4096}, "timed": true},
    {"name": "no_bias", "set": {"bias": false, "h": [1, 2]}, "hidden": true}])");
  EXPECT_EQ(trouble(document), "");
  auto variants = load()->torch.variants;
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_EQ(variants[0].name, "wide");
  EXPECT_EQ(variants[0].text(), "rows = 1, w = 4096");
  EXPECT_TRUE(variants[0].timed && !variants[0].hidden);
  EXPECT_EQ(variants[1].text(), "bias = False, h = (1, 2)");
  EXPECT_TRUE(!variants[1].timed && variants[1].hidden);
  EXPECT_EQ(visible_constants(load()->torch), R"([{"rows":1,"w":4096}])");
  document["variants"].erase(0);
  write("task.json", document.dump());
  EXPECT_EQ(visible_constants(load()->torch), "");
}

TEST_F(torch_task, refuses_variants_that_are_none) {
  write("problem.py", "rows = 4\n" + std::string{problem} + "\n\ndef more():\n    cols = 3\n");
  auto document = relu();
  for (auto [variants, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[]", "a list of 1 to 64"},
           {"{}", "a list of 1 to 64"},
           {R"([{"set": {"rows": 1}}])", "variants[0].name"},
           {R"([{"name": "base", "set": {"rows": 1}}])", "variants[0].name"},
           {R"([{"name": "a\nb", "set": {"rows": 1}}])", "variants[0].name"},
           {R"([{"name": "a"}])", "variants[0].set"},
           {R"([{"name": "a", "set": {}}])", "variants[0].set"},
           {R"([{"name": "a", "set": {"rows": null}}])", "variants[0].set.rows"},
           {R"([{"name": "a", "set": {"rows": [[1]]}}])", "variants[0].set.rows"},
           {R"([{"name": "a", "set": {"rows-": 1}}])", "no name in Python"},
           {R"([{"name": "a", "set": {"rows": 1}, "hiden": true}])", "did you mean \"hidden\""},
           {R"([{"name": "a", "set": {"rows": 1}, "timed": 1}])", "variants[0].timed"},
           {R"([{"name": "a", "set": {"rows": 1}}, {"name": "a", "set": {"rows": 2}}])",
            "variants[1].name is used twice: a"},
           {R"([{"name": "a", "set": {"rows": 1}}, {"name": "b", "set": {"rows": 1}}])",
            "variants[1].set is that of a"},
           {R"([{"name": "a", "set": {"row": 1}}])", "assigns no row at module level"},
           {R"([{"name": "a", "set": {"cols": 1}}])", "assigns no cols at module level"}}) {
    document["variants"] = json::parse(variants);
    EXPECT_THAT(trouble(document), HasSubstr(words)) << variants;
  }
}

TEST_F(torch_task, declares_inputs_that_its_model_writes_to) {
  auto document = relu();
  document["mutates"] = {1, 0};
  EXPECT_EQ(trouble(document), "");
  EXPECT_THAT(load()->torch.mutates, ElementsAre(1u, 0u));
  for (const json& wrong : {json{0, 0}, json{-1}, json{64}, json{"x"}, json{0.5}, json(1)}) {
    document["mutates"] = wrong;
    EXPECT_THAT(trouble(document), HasSubstr("mutates")) << wrong;
  }
}

TEST_F(torch_task, errors_name_file_and_key) {
  auto document = relu();
  document["cases"] = json::array();
  EXPECT_THAT(trouble(document), HasSubstr("unknown key \"cases\""));
  document = relu();
  document["level"] = "one";
  EXPECT_THAT(trouble(document), testing::AllOf(HasSubstr("1_Exp/task.json"), HasSubstr("level")));
  document = relu();
  document["precision"] = "fp64";
  EXPECT_THAT(trouble(document), HasSubstr("precision"));
  document = relu();
  document["contract"] = "torhc";
  EXPECT_THAT(trouble(document), HasSubstr("schema_version")); // read as a native task
  document = relu();
  document["verb"] = "debug";
  EXPECT_THAT(trouble(document), HasSubstr("verb"));
}

TEST_F(torch_task, a_problem_must_define_all_that_is_called) {
  write("problem.py", "class Model: pass\ndef get_init_inputs(): return []\n");
  auto x = load();
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "bad_problem");
  EXPECT_THAT(x.error().message, HasSubstr("problem.py: it defines no get_inputs"));
  std::filesystem::remove(root_ + "/suite/level1/1_Exp/problem.py");
  EXPECT_EQ(load().error().category, "missing_file");
}

TEST_F(torch_task, a_name_inside_a_function_or_of_another_thing_does_not_count) {
  EXPECT_EQ(missing_of_problem(problem), "");
  EXPECT_EQ(missing_of_problem("class ModelNew: pass\n"), "it defines no class Model");
  EXPECT_EQ(missing_of_problem("class Model: pass\n  def get_inputs(): pass\n"),
            "it defines no get_inputs");
  EXPECT_EQ(missing_of_problem("class Model: pass\nget_inputs = list\ndef get_init_inputs(): pass"),
            "");
}

TEST_F(torch_task, stays_one_whatever_contract_a_run_asks_for) {
  auto x = load();
  ASSERT_TRUE(x);
  for (auto contract : {contract_kind::native, contract_kind::device, contract_kind::torch}) {
    judging_terms terms;
    terms.backend = "cuda";
    terms.contract = contract;
    auto same = on_terms(*x, terms);
    ASSERT_TRUE(same) << to_string(contract);
    EXPECT_TRUE((*same)->contract == contract_kind::torch);
    EXPECT_EQ((*same)->terms.backend, "cuda");
  }
  judging_terms hip;
  hip.backend = "hip";
  EXPECT_EQ(on_terms(*x, hip).error().category, "unsupported_backend");
}

TEST_F(torch_task, no_other_task_becomes_one) {
  task native;
  native.contract = contract_kind::native;
  native.backends = {"cpu"};
  judging_terms terms;
  terms.contract = contract_kind::torch;
  auto refused = on_terms(native, terms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().category, "unsupported_contract");
}

// -- several roots --------------------------------------------------------------------------------

TEST_F(torch_task, roots_are_searched_in_order) {
  std::string name = testing::TempDir() + "kernelmill-torch-task-XXXXXX";
  std::string other = ::mkdtemp(name.data());
  for (const std::string id : {"suite/level1/1_Exp", "suite/level1/2_Log"}) {
    auto folder = other + "/" + id;
    std::filesystem::create_directories(folder);
    auto document = relu();
    document["id"] = id;
    document["title"] = "the other";
    std::ofstream{folder + "/task.json"} << document.dump();
    std::ofstream{folder + "/prompt.md"} << "x\n";
    std::ofstream{folder + "/problem.py"} << problem;
  }
  task_roots roots{root_, other};
  auto ids = list_tasks(roots);
  ASSERT_TRUE(ids);
  EXPECT_THAT(*ids, ElementsAre("suite/level1/1_Exp", "suite/level1/2_Log"));
  EXPECT_EQ(load_task(roots, "suite/level1/1_Exp").value()->title, "Exp");
  EXPECT_EQ(load_task(roots, "suite/level1/2_Log").value()->title, "the other");
  EXPECT_EQ(load_task(roots, "suite/level1/3_Sin").error().category, "unknown_task");
  EXPECT_TRUE(list_tasks(task_roots{root_, "/nowhere"}));
  EXPECT_FALSE(list_tasks(task_roots{"/nowhere"}));
  std::filesystem::remove_all(other);
}

TEST_F(torch_task, what_an_import_is_writing_is_no_task_yet) {
  write("task.json", relu().dump(), ".import-ab12/task");
  EXPECT_THAT(*list_tasks(root_), ElementsAre("suite/level1/1_Exp"));
}

} // namespace torch_task_test

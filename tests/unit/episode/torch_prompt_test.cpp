#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/episode/completion_parser.hpp"
#include "actors/episode/prompt.hpp"
#include "actors/episode/torch_answers.hpp"
#include "actors/episode/unchanged.hpp"
#include "messages/message.hpp"

namespace kernelmill {
namespace torch_prompt_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

task problem(const std::string& backend = "cuda", const std::string& language = "any") {
  task x;
  x.id = "kernelbench/level1/19_ReLU";
  x.contract = contract_kind::torch;
  x.backends = {"cpu", "cuda"};
  x.terms.backend = backend;
  x.prompt = "Problem 19.\n";
  x.torch.code = "class Model(nn.Module):\n    pass\n";
  x.terms.language = language;
  return x;
}

std::string user(const task& x) {
  Message<wire::RetrieveResult> none;
  return task_prompt(x, *none.open());
}

TEST(torch_prompt, shows_the_problem_an_example_and_the_machine) {
  auto x = problem();
  x.terms.hardware = "NVIDIA H200 (sm_90)";
  EXPECT_THAT(user(x), AllOf(StartsWith("[task: kernelbench/level1/19_ReLU]\nProblem 19.\n"),
                             HasSubstr("It runs on: NVIDIA H200 (sm_90)\n"),
                             HasSubstr("```python\n" + x.torch.code + "```\n"),
                             HasSubstr("class ModelNew(nn.Module)"), HasSubstr("load_inline("),
                             HasSubstr("at::cuda::getCurrentCUDAStream()")));
}

TEST(torch_prompt, says_of_no_signature_and_no_cases) {
  for (const auto& text : {user(problem()), system_prompt(problem())})
    EXPECT_THAT(text, AllOf(Not(HasSubstr("solve(")), Not(HasSubstr("Shapes that you may see")),
                            Not(HasSubstr("extern \"C\""))));
}

TEST(torch_prompt, the_example_is_in_the_wanted_language) {
  EXPECT_THAT(user(problem("cuda", "triton")),
              AllOf(HasSubstr("@triton.jit"), Not(HasSubstr("load_inline"))));
  EXPECT_THAT(user(problem("cuda", "torch")),
              AllOf(HasSubstr("torch.addcmul"), Not(HasSubstr("load_inline"))));
  EXPECT_THAT(user(problem("cpu")),
              AllOf(HasSubstr("at::parallel_for"), Not(HasSubstr("__global__"))));
}

TEST(torch_prompt, from_words_alone_shows_inputs_and_not_what_is_computed) {
  auto x = problem();
  x.verb = "synthesize";
  x.torch.code = "import torch\nROWS = 7\nclass Model(torch.nn.Module):\n"
                 "    def forward(self, x):\n        return secret(x)\n"
                 "def get_inputs():\n    return [torch.rand(ROWS)]\n"
                 "def get_init_inputs():\n    return []\n";
  auto text = user(x) + system_prompt(x);
  EXPECT_THAT(text, AllOf(HasSubstr("ROWS = 7"), HasSubstr("torch.rand(ROWS)"),
                          HasSubstr("def forward(self, x): ..."), HasSubstr("no code to begin"),
                          Not(HasSubstr("secret"))));
  // What was not shown cannot be copied.
  auto answer = x.torch.code;
  answer.replace(answer.find("Model"), 5, "ModelNew");
  EXPECT_EQ(copied_from(x, user(x), answer), "");
  x.verb = "optimize";
  EXPECT_EQ(copied_from(x, user(x), answer), "the problem's own model");
}

TEST(torch_prompt, shows_the_starter_and_knows_a_copy_of_it) {
  auto x = problem();
  x.verb = "debug";
  x.starter = "class ModelNew(nn.Module):\n    broken = 1\n";
  EXPECT_THAT(user(x), AllOf(HasSubstr("The starter is broken"), HasSubstr(x.starter),
                             HasSubstr("The module that says what is computed:\n")));
  EXPECT_EQ(copied_from(x, "", "# repaired\n" + x.starter), "the starter");
  x.verb = "diagnose";
  x.diagnoses = {"slow_loop", "launches"};
  EXPECT_THAT(system_prompt(x) + user(x),
              AllOf(HasSubstr("<DIAGNOSIS>"), HasSubstr("- launches\n")));
}

TEST(torch_prompt, says_of_other_types_that_each_output_has_its_own_bound) {
  auto x = problem();
  x.torch.precision = "own";
  EXPECT_THAT(system_prompt(x), AllOf(HasSubstr("Each output has a bound of its own type"),
                                      Not(HasSubstr("half precision"))));
}

TEST(torch_prompt, says_which_inputs_are_to_be_written_to) {
  EXPECT_THAT(system_prompt(problem()), HasSubstr("Inputs are not written to."));
  auto x = problem();
  x.torch.mutates = {1};
  EXPECT_THAT(system_prompt(x), AllOf(HasSubstr("Model writes to input 1, counted from 0"),
                                      Not(HasSubstr("Inputs are not written to."))));
}

TEST(torch_prompt, names_visible_variants_and_of_hidden_ones_only_that_there_are_some) {
  EXPECT_THAT(user(problem()), Not(HasSubstr("other shapes")));
  auto x = problem();
  x.torch.variants = {{"wide", {{"dim", "8192"}, {"rows", "16"}}, false, true}};
  EXPECT_THAT(user(x), AllOf(HasSubstr("must be right at other shapes"),
                             HasSubstr("\n- wide: dim = 8192, rows = 16, timed, too\n"),
                             HasSubstr("geometric mean"), Not(HasSubstr("not shown"))));
  x.torch.variants[0].timed = false;
  x.torch.variants.push_back({"secret", {{"dim", "1000"}}, true, false});
  EXPECT_THAT(user(x), AllOf(HasSubstr("- wide: dim = 8192, rows = 16\nOthers are not shown"),
                             Not(HasSubstr("secret")), Not(HasSubstr("1000")),
                             Not(HasSubstr("geometric mean"))));
  x.terms.mode = "kernelbench";
  EXPECT_THAT(user(x), Not(HasSubstr("wide")));
}

TEST(torch_prompt, asks_for_a_function_where_the_task_takes_one) {
  for (bool as_tuple : {false, true})
    for (const std::string language : {"any", "triton", "torch"}) {
      auto x = problem("cuda", language);
      x.torch.entry = {"run", as_tuple};
      auto text = system_prompt(x) + user(x);
      EXPECT_THAT(text,
                  AllOf(HasSubstr("defines the function run."),
                        HasSubstr(as_tuple ? "def run(inputs):\n    x, shift, scale = inputs\n"
                                           : "def run(x, shift, scale):\n"),
                        HasSubstr(as_tuple ? "with one tuple" : "one argument each"),
                        Not(HasSubstr("class ModelNew(nn.Module)")), Not(HasSubstr("self.scale"))));
    }
}

TEST(torch_prompt, knows_a_copy_of_the_function_that_was_shown) {
  auto x = problem();
  x.torch.entry = {"run", false};
  x.torch.code = "import torch\ndef reference(x):\n    return x.exp()\n"
                 "class Model(torch.nn.Module):\n    def forward(self, x):\n"
                 "        return reference(x)\n";
  for (const char* copy :
       {"import torch\ndef run(x):\n    return x.exp()\n",
        "import torch\ndef reference(x):\n    return x.exp()\nrun = reference\n",
        "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        "        return reference(x)\n"})
    EXPECT_EQ(copied_from(x, user(x), copy), "the problem's own model") << copy;
  EXPECT_EQ(copied_from(x, user(x), "import torch\ndef run(x):\n    return torch.exp(x)\n"), "");
}

TEST(torch_prompt, says_the_rule_of_a_suite) {
  auto x = problem();
  x.terms.mode = "suite";
  x.torch.tolerance = torch_tolerance{0.01, 0.02, 0.95, 10};
  x.torch.variants = {{"wide", {{"dim", "8192"}}, false, false, torch_tolerance{0.5, 0, 1, {}}},
                      {"secret", {{"dim", "7"}}, true, false, torch_tolerance{0.7, 0, 1, {}}}};
  EXPECT_THAT(system_prompt(x),
              AllOf(HasSubstr("may be off by 0.01 + 0.02 |want| for at least 95 % of an output, "
                              "and by no more than 10 anywhere."),
                    HasSubstr("At wide: 0.5 + 0 |want|."), Not(HasSubstr("0.7")),
                    Not(HasSubstr("double precision"))));
}

TEST(torch_prompt, says_how_it_is_judged) {
  auto text = system_prompt(problem());
  for (auto* told :
       {"<think>", "<KERNEL>\n```python\n", "ModelNew", "new before every call", "load_inline",
        "in __init__", "double precision", "TF32 do not", "current stream", "kept between calls"})
    EXPECT_THAT(text, HasSubstr(told));
  auto x = problem();
  x.terms.float32 = "tf32";
  EXPECT_THAT(system_prompt(x), AllOf(HasSubstr("and TF32 in"), Not(HasSubstr("TF32 do not"))));
  x.terms.mode = "kernelbench";
  EXPECT_THAT(system_prompt(x),
              AllOf(HasSubstr("benchmark's own tolerances"), Not(HasSubstr("double precision"))));
  EXPECT_THAT(system_prompt(problem("cpu")), Not(HasSubstr("current stream")));
  EXPECT_THAT(system_prompt(problem("cuda", "triton")), HasSubstr("is refused"));
}

TEST(torch_prompt, its_own_example_is_an_answer) {
  for (const std::string language : {"any", "triton", "torch"})
    for (const std::string backend : {"cpu", "cuda"}) {
      auto code = std::string{example_answer(language, backend)};
      auto x = parse_completion("<think>\nfuse\n</think>\n<KERNEL>\n```python\n" + code +
                                "```\n</KERNEL>\n");
      ASSERT_TRUE(x.ok) << language;
      EXPECT_EQ(x.language, "python");
      EXPECT_EQ(x.kernel + "\n", code);
      EXPECT_TRUE(x.problems.empty());
    }
}

TEST(torch_prompt, a_triton_fence_and_a_fence_without_tags_are_taken) {
  auto x = parse_completion("<KERNEL>\n```triton\nimport triton\n```\n</KERNEL>");
  EXPECT_TRUE(x.ok);
  EXPECT_EQ(x.language, "python");
  x = parse_completion("Here it is:\n```python\nclass ModelNew:\n    pass\n```\nDone.");
  EXPECT_TRUE(x.ok);
  EXPECT_EQ(x.kernel, "class ModelNew:\n    pass");
}

} // namespace torch_prompt_test
} // namespace kernelmill

// Problems of other suites than KernelBench: a function as the answer, and the suite's own rule of
// what is right.

#include <algorithm>

#include "torch_fixture.hpp"

using namespace kernelmill;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

namespace torch_suites_test {

const char* const scaled_problem = R"(
import torch


def reference(x, shift, scale):
    return scale * x * x + shift


class Model(torch.nn.Module):
    def forward(self, x, shift, scale):
        return reference(x, shift, scale)


rows = 64


def get_inputs():
    return [torch.randn(rows, 96), torch.randn(rows, 96), 0.5]


def get_init_inputs():
    return []
)";

std::string category(const Message<wire::EvaluateResult>& x) {
  return x.open()->getFault().getCategory();
}

// A module with the function `run`.
std::string run(const std::string& body, const std::string& before = "") {
  return "import torch\n" + before + "def run(x, shift, scale):\n    " + body + "\n";
}

void by_suite(wire::EvaluateRequest::Builder x) {
  x.setMode("suite");
}

class torch_suites : public torch_fixture {
protected:
  void use(const std::string& keys) { keys_ = ", " + keys; }
};

TEST_F(torch_suites, a_function_is_judged_as_a_model_is) {
  use(R"("entry": {"function": "run"})");
  auto right = evaluate(scaled_problem, run("return torch.addcmul(shift, x, x, value=scale)"));
  EXPECT_TRUE(right.open()->getCorrect()) << summary(right);
  auto wrong = evaluate(scaled_problem, run("return x"));
  EXPECT_EQ(category(wrong), "wrong_result") << summary(wrong);
  auto other =
      evaluate(scaled_problem, run("return [x]", "class Mine(torch.Tensor):\n    pass\n"
                                                 "x = 1\n") +
                                   "def run(x, shift, scale):\n    return x.as_subclass(Mine)\n");
  EXPECT_EQ(category(other), "wrong_type") << summary(other);
  auto model =
      evaluate(scaled_problem,
               "import torch\nclass ModelNew(torch.nn.Module):\n"
               "    def forward(self, x, shift, scale):\n        return scale * x * x + shift\n"
               "def run(*inputs):\n    raise ValueError\n");
  EXPECT_TRUE(model.open()->getCorrect()) << summary(model);
}

TEST_F(torch_suites, a_function_may_take_all_in_a_tuple) {
  use(R"("entry": {"function": "custom_kernel", "takes": "tuple"})");
  auto right = evaluate(scaled_problem, "def custom_kernel(data):\n    x, shift, scale = data\n"
                                        "    return x * x * scale + shift\n");
  EXPECT_TRUE(right.open()->getCorrect()) << summary(right);
  auto other = evaluate(scaled_problem, "def run(x, shift, scale):\n    return x\n");
  EXPECT_EQ(category(other), "missing_model");
  EXPECT_THAT(summary(other), HasSubstr("no function custom_kernel"));
}

TEST_F(torch_suites, a_function_that_is_the_references_is_told) {
  use(R"("entry": {"function": "run"})");
  auto same = evaluate(scaled_problem, run("return scale * x * x + shift"));
  EXPECT_TRUE(same.open()->getCorrect()) << summary(same);
  EXPECT_THAT(rules_of(same), Contains("own_model"));
}

TEST_F(torch_suites, the_rule_of_the_suite_decides) {
  use(R"("entry": {"function": "run"},
         "tolerance": {"absolute": 0.1, "relative": 0.1, "matched": 0.9, "largest": 1})");
  auto sloppy = run("return (scale * x * x + shift).half().float()");
  EXPECT_EQ(category(evaluate(scaled_problem, sloppy)), "wrong_result") << "in the mode honest";
  auto good = evaluate(scaled_problem, sloppy, by_suite);
  EXPECT_TRUE(good.open()->getCorrect()) << summary(good);
  auto some = run("y = scale * x * x + shift\n    y[:, :9] += 0.9\n    return y");
  EXPECT_TRUE(evaluate(scaled_problem, some, by_suite).open()->getCorrect());
  auto more = run("y = scale * x * x + shift\n    y[:, :20] += 0.9\n    return y");
  EXPECT_EQ(category(evaluate(scaled_problem, more, by_suite)), "wrong_result");
  auto unwritten = run("y = scale * x * x + shift\n    y[:, :4] = float('nan')\n    return y");
  EXPECT_EQ(category(evaluate(scaled_problem, unwritten, by_suite)), "wrong_result");
  auto far = run("y = scale * x * x + shift\n    y[0, 0] += 3\n    return y");
  EXPECT_EQ(category(evaluate(scaled_problem, far, by_suite)), "wrong_result");
}

TEST_F(torch_suites, each_shape_may_have_a_rule_of_its_own) {
  use(R"("entry": {"function": "run"}, "tolerance": {"absolute": 1, "relative": 0},
         "variants": [{"name": "tall", "set": {"rows": 77}},
                      {"name": "exact", "set": {"rows": 33}, "hidden": true,
                       "tolerance": {"absolute": 1e-6, "relative": 1e-6}}])");
  auto right =
      evaluate(scaled_problem, run("return torch.addcmul(shift, x, x, value=scale)"), by_suite);
  EXPECT_TRUE(right.open()->getCorrect()) << summary(right);
  auto off = evaluate(scaled_problem, run("return scale * x * x + shift + 0.5"), by_suite);
  EXPECT_EQ(category(off), "wrong_result");
  EXPECT_THAT(summary(off), HasSubstr("at hidden shape 1: it fails there"));
}

TEST_F(torch_suites, what_takes_the_clocks_place_or_keeps_results_is_refused_by_that_rule_too) {
  use(R"("entry": {"function": "run"}, "tolerance": {"absolute": 0.01, "relative": 0.01})");
  auto kept =
      run("\n    kept.append(scale * x * x + shift)\n    return kept[0].clone()", "kept = []\n");
  EXPECT_EQ(category(evaluate(scaled_problem, kept, by_suite)), "wrong_result");
  auto writes = evaluate(scaled_problem,
                         run("y = scale * x * x + shift\n    x.zero_()\n    return y"), by_suite);
  EXPECT_THAT(rules_of(writes), Contains("input_overwrite")) << summary(writes);
}

TEST_F(torch_suites, a_task_without_a_rule_is_not_judged_by_one) {
  use(R"("entry": {"function": "run"})");
  auto result = evaluate(scaled_problem, run("return x"), by_suite);
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION);
  EXPECT_THAT(summary(result), HasSubstr("it has no tolerance"));
}

TEST_F(torch_suites, a_rule_that_lets_anything_pass_judges_nothing) {
  use(R"("entry": {"function": "run"}, "tolerance": {"absolute": 100, "relative": 0})");
  auto result = evaluate(scaled_problem, run("return torch.zeros_like(x)"), by_suite);
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION);
  EXPECT_EQ(category(result), "unfit_task") << summary(result);
}

// Memory for an output, as problems of GPU MODE hand it over, is no rubbish of ours.
TEST_F(torch_suites, an_output_that_is_given_is_the_same_for_each_look) {
  use(R"("entry": {"function": "custom_kernel", "takes": "tuple"}, "mutates": [1])");
  const char* const given_problem = R"(
import torch


class Model(torch.nn.Module):
    def forward(self, x, out):
        out.copy_(torch.softmax(x, dim=-1))
        return out


def get_inputs():
    return [torch.randn(32, 100), torch.empty(32, 100)]


def get_init_inputs():
    return []
)";
  auto right = evaluate(given_problem, "import torch\ndef custom_kernel(data):\n    x, out = data\n"
                                       "    out[:] = (x - x.logsumexp(1, True)).exp()\n"
                                       "    return out\n");
  EXPECT_TRUE(right.open()->getCorrect()) << summary(right);
  EXPECT_THAT(rules_of(right), testing::Not(Contains("input_overwrite")));
  auto unwritten = evaluate(given_problem, "import torch\ndef custom_kernel(data):\n"
                                           "    return torch.softmax(data[0], -1)\n");
  EXPECT_EQ(category(unwritten), "wrong_result") << summary(unwritten);
}

} // namespace torch_suites_test

#include "torch_fixture.hpp"

#include "tests/integration/referee/too_busy.hpp"

namespace kernelmill {
namespace torch_referee_test {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string category(const Message<wire::EvaluateResult>& x) {
  return x.open()->getFault().getCategory();
}
std::string message(const Message<wire::EvaluateResult>& x) {
  return x.open()->getFault().getMessage();
}

using torch_referee = torch_fixture;

TEST_F(torch_referee, a_right_module_is_correct_in_every_trial) {
  auto result = evaluate(linear_problem, linear_answer("return torch.relu(self.linear(x))"));
  auto x = result.open();
  EXPECT_TRUE(x->getCorrect()) << summary(result);
  ASSERT_GE(x->getCases().size(), 4u); // two of its own, turned signs, other contents
  for (auto trial : x->getCases()) EXPECT_TRUE(trial.getPass());
  EXPECT_TRUE(x->getCases()[2].getHidden());
  EXPECT_EQ(x->getSeed().size(), 32u);
  EXPECT_THAT(std::string{x->getCases()[0].getShape()}, HasSubstr("float32[64, 96]"));
}

TEST_F(torch_referee, a_right_module_is_timed_against_the_problems_own_model) {
  auto result = evaluate(linear_problem, linear_answer("return torch.relu(self.linear(x))"),
                         [](wire::EvaluateRequest::Builder x) {
                           auto timing = x.initTiming();
                           timing.setEnabled(true);
                           timing.setWidest(1e3); // whether there is a time is the question
                         });
  auto timing = result.open()->getTiming();
  SKIP_WHEN_TOO_BUSY(timing);
  ASSERT_TRUE(timing.getMeasured()) << summary(result);
  EXPECT_GT(timing.getCandidateMs(), 0);
  EXPECT_GT(timing.getReferenceMs(), 0);
  EXPECT_GT(timing.getSamples(), 0u);
}

TEST_F(torch_referee, a_wrong_element_is_told_with_its_place) {
  auto result = evaluate(linear_problem, linear_answer("y = torch.relu(self.linear(x))\n"
                                                       "y[3, 5] += 1\nreturn y"));
  EXPECT_EQ(category(result), "wrong_result");
  EXPECT_THAT(message(result), HasSubstr("output[3, 5]"));
}

TEST_F(torch_referee, half_precision_behind_a_float_face_is_wrong) {
  auto result =
      evaluate(linear_problem,
               linear_answer("w = self.linear.weight.bfloat16().float()\n"
                             "return torch.relu(x.bfloat16().float() @ w.t() + self.linear.bias)"));
  EXPECT_EQ(category(result), "wrong_result") << summary(result);
}

TEST_F(torch_referee, parameters_come_from_a_seed_that_the_module_does_not_know) {
  auto result = evaluate(
      linear_problem, linear_answer("return torch.relu(x @ w.t())",
                                    "torch.manual_seed(42)\nw = torch.nn.Linear(96, 32).weight\n"));
  EXPECT_EQ(category(result), "wrong_result");
}

TEST_F(torch_referee, contents_that_only_hold_on_the_problems_own_inputs_are_found_out) {
  const char* problem = R"(
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(32, 32)]
def get_init_inputs():
    return []
)";
  auto result = evaluate(problem, "import torch\nclass ModelNew(torch.nn.Module):\n"
                                  "    def forward(self, x):\n        return x.clone()\n");
  EXPECT_EQ(category(result), "wrong_result");
  EXPECT_THAT(message(result), HasSubstr("hidden"));
}

TEST_F(torch_referee, times_of_other_contents_are_told_and_cannot_be_answered_by_a_look) {
  const char* problem = R"(
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(256, 256)]
def get_init_inputs():
    return []
)";
  auto timed = [](wire::EvaluateRequest::Builder x) {
    auto timing = x.initTiming();
    timing.setEnabled(true);
    timing.setWidest(1e3); // whether there is a time is the question
  };
  auto answer = [](const std::string& line) {
    return "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        "
           "return " +
           line + "\n";
  };
  // Kinds that seem slower than the problem's own contents are timed by themselves.
  auto slow = evaluate(problem,
                       answer("x.clamp(min=0) if bool((x >= 0).all()) else "
                              "[x.clamp(min=0) for _ in range(60)][-1]"),
                       timed);
  if (auto timing = slow.open()->getTiming(); !too_busy(timing)) {
    ASSERT_TRUE(timing.getMeasured()) << summary(slow);
    EXPECT_GE(timing.getKinds().size(), 2u) << summary(slow);
  }
  auto looks = evaluate(
      problem, answer("x.clone() if bool((x.view(-1)[::1024] >= 0).all()) else torch.relu(x)"),
      timed);
  EXPECT_THAT(category(looks), AnyOf("wrong_result", "integrity")) << summary(looks);
}

TEST_F(torch_referee, random_numbers_are_compared_when_they_are_timed) {
  const char* problem = R"(
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)
def get_inputs():
    return [torch.rand(128, 128)]
def get_init_inputs():
    return []
)";
  auto answer = [](const std::string& later) {
    return "import torch\nclass ModelNew(torch.nn.Module):\n    calls = 0\n    def forward(self, "
           "x):\n"
           "        self.calls += 1\n        return x + torch.rand_like(x) if self.calls < 24 "
           "else " +
           later + "\n";
  };
  auto timed = [](wire::EvaluateRequest::Builder x) {
    auto timing = x.initTiming();
    timing.setEnabled(true);
    timing.setWidest(1e3); // whether there is a time is the question
  };
  auto honest = evaluate(problem, answer("torch.rand_like(x) + x"), timed);
  if (auto timing = honest.open()->getTiming(); !too_busy(timing)) {
    EXPECT_TRUE(timing.getMeasured()) << summary(honest);
  }
  EXPECT_TRUE(honest.open()->getCorrect()) << summary(honest);
  auto lazy = evaluate(problem, answer("x + 0.5"), timed);
  EXPECT_FALSE(lazy.open()->getCorrect()) << summary(lazy);
}

TEST_F(torch_referee, hidden_contents_keep_the_structure_of_matrices) {
  const char* problem = R"(
import torch
class Model(torch.nn.Module):
    def forward(self, a, s):
        return torch.matmul(a, a) + torch.matmul(s, s)
def get_inputs():
    s = torch.rand(48, 48)
    return [torch.triu(torch.rand(48, 48)), (s + s.t()) / 2]
def get_init_inputs():
    return []
)";
  // Right for upper triangular and for symmetric inputs alone.
  auto result =
      evaluate(problem, "import torch\nclass ModelNew(torch.nn.Module):\n"
                        "    def forward(self, a, s):\n"
                        "        return torch.triu(torch.matmul(a, a)) + torch.matmul(s.t(), s)\n");
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
  EXPECT_GE(result.open()->getCases().size(), 4u);
}

TEST_F(torch_referee, outputs_of_another_shape_type_or_kind_are_told_apart) {
  EXPECT_EQ(
      category(evaluate(linear_problem, linear_answer("return torch.relu(self.linear(x))[:1]"))),
      "wrong_shape");
  EXPECT_EQ(category(evaluate(linear_problem,
                              linear_answer("return torch.relu(self.linear(x)).double()"))),
            "wrong_dtype");
  EXPECT_EQ(category(evaluate(linear_problem, linear_answer("return 3"))), "wrong_type");
  EXPECT_EQ(
      category(evaluate(linear_problem, linear_answer("return self.linear(x).as_subclass(Odd)",
                                                      "class Odd(torch.Tensor):\n    pass\n"))),
      "wrong_type");
}

TEST_F(torch_referee, tuples_and_integers_are_compared_exactly) {
  const char* problem = R"(
import torch
class Model(torch.nn.Module):
    def forward(self, x, i):
        values, places = torch.max(x, dim=1)
        return values, places + i
def get_inputs():
    return [torch.rand(16, 64), torch.randint(0, 9, (16,))]
def get_init_inputs():
    return []
)";
  auto answer = [](const std::string& last) {
    return "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, i):\n"
           "        v, p = torch.max(x, dim=1)\n        assert i.dtype == torch.int64\n        "
           "return " +
           last + "\n";
  };
  EXPECT_TRUE(evaluate(problem, answer("v, p + i")).open()->getCorrect());
  EXPECT_TRUE(evaluate(problem, answer("[v, p + i]")).open()->getCorrect());
  auto wrong = evaluate(problem, answer("v, p + i + 1"));
  EXPECT_THAT(message(wrong), HasSubstr("output1"));
  EXPECT_EQ(category(evaluate(problem, answer("v"))), "wrong_type");
}

TEST_F(torch_referee, what_a_module_raises_is_its_own_fault_by_place) {
  EXPECT_EQ(category(evaluate(linear_problem, "def broken(:\n")), "import_error");
  EXPECT_EQ(category(evaluate(linear_problem, "import torch\nx = 3\n")), "missing_model");
  auto result = evaluate(linear_problem, linear_answer("return x @ x"));
  EXPECT_EQ(category(result), "runtime_error");
  EXPECT_THAT(message(result), HasSubstr("candidate.py"));
  EXPECT_EQ(
      category(evaluate(linear_problem, "import torch\nclass ModelNew(torch.nn.Module):\n"
                                        "    def __init__(self):\n        super().__init__()\n")),
      "init_error");
}

TEST_F(torch_referee, an_input_that_was_changed_is_a_finding) {
  auto result = evaluate(linear_problem,
                         linear_answer("y = torch.relu(self.linear(x))\nx.mul_(2)\nreturn y"));
  EXPECT_THAT(rules_of(result), Contains("input_overwrite")) << summary(result);
}

// The reference adds to its second input, as a fused norm of a transformer does.
const char* const writing_problem =
    "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, residual):\n"
    "        residual.add_(x)\n"
    "        return residual * torch.rsqrt(residual.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
    "def get_inputs():\n    return [torch.randn(64, 512), torch.randn(64, 512)]\n"
    "def get_init_inputs():\n    return []\n";

std::string writing_answer(const std::string& sum) {
  return "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, residual):\n"
         "        r = " +
         sum + "\n        return r * torch.rsqrt(torch.mean(r * r, -1, keepdim=True) + 1e-6)\n";
}

TEST_F(torch_referee, a_reference_that_writes_to_an_input_unasked_is_the_tasks_fault) {
  for (const char* sum : {"residual.add_(x)", "residual + x"}) {
    auto result = evaluate(writing_problem, writing_answer(sum));
    EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION)
        << summary(result);
    EXPECT_THAT(message(result), HasSubstr("input 1 (residual)"));
    EXPECT_THAT(rules_of(result), testing::IsEmpty());
  }
  EXPECT_THAT(check(writing_problem), Contains(HasSubstr("\"mutates\": [1]")));
}

TEST_F(torch_referee, an_input_that_the_task_declares_is_compared_as_an_output) {
  keys_ = R"(, "mutates": [1])";
  auto timed = [](wire::EvaluateRequest::Builder x) { x.initTiming().setEnabled(true); };
  auto result = evaluate(writing_problem, writing_answer("residual.add_(x)"), timed);
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
  EXPECT_THAT(rules_of(result), Not(Contains("input_overwrite"))) << summary(result);
  auto pure = evaluate(writing_problem, writing_answer("residual + x"));
  EXPECT_EQ(category(pure), "wrong_result") << summary(pure);
  auto other = evaluate(writing_problem, writing_answer("residual.add_(x); x.zero_()"));
  EXPECT_THAT(rules_of(other), Contains("input_overwrite")) << summary(other);
  EXPECT_THAT(check(writing_problem), Not(Contains(HasSubstr("changes its inputs"))));
}

TEST_F(torch_referee, a_problem_that_decides_nothing_judges_no_candidate) {
  for (const std::string body : {"torch.softmax(x, 1).sum(1)", "x * float('nan')"}) {
    auto problem = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
                   "        return " +
                   body +
                   "\ndef get_inputs():\n    return [torch.rand(64, 64)]\n"
                   "def get_init_inputs():\n    return []\n";
    auto answer = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
                  "        return " +
                  body + "\n";
    for (bool timed : {false, true}) {
      auto result = evaluate(problem, answer, [&](wire::EvaluateRequest::Builder x) {
        x.initTiming().setEnabled(timed);
      });
      EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION)
          << summary(result);
      EXPECT_EQ(category(result), "unfit_task");
      EXPECT_THAT(rules_of(result), testing::IsEmpty());
    }
    auto result = evaluate(problem, answer,
                           [](wire::EvaluateRequest::Builder x) { x.setMode("kernelbench"); });
    EXPECT_NE(category(result), "unfit_task");
  }
}

// A norm in bfloat16, as inference engines have it: sums in float32, the rest in the tensors' type.
const char* const bf16_problem =
    "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, w):\n"
    "        y = x.float()\n"
    "        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
    "        return y.to(x.dtype) * w\n"
    "def get_inputs():\n    return [torch.randn(64, 1024).to(torch.bfloat16), "
    "torch.randn(1024).to(torch.bfloat16)]\n"
    "def get_init_inputs():\n    return []\n";

std::string bf16_answer(const std::string& last) {
  return "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, w):\n"
         "        y = x.float()\n"
         "        y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6)\n        " +
         last + "\n";
}

TEST_F(torch_referee, tensors_that_keep_their_own_types_have_bounds_of_these) {
  keys_ = R"(, "precision": "own")";
  auto timed = [](wire::EvaluateRequest::Builder x) { x.initTiming().setEnabled(true); };
  auto honest = evaluate(bf16_problem,
                         bf16_answer("assert x.dtype == w.dtype == torch.bfloat16\n"
                                     "        return y.to(torch.bfloat16) * w"),
                         timed);
  EXPECT_TRUE(honest.open()->getCorrect()) << summary(honest);
  EXPECT_THAT(std::string{honest.open()->getCases()[0].getShape()}, HasSubstr("bfloat16[64"));
  auto wide = evaluate(bf16_problem, bf16_answer("return y * w.float()"));
  EXPECT_EQ(category(wide), "wrong_dtype") << summary(wide);
  auto coarse = evaluate(bf16_problem, bf16_answer("m, e = torch.frexp(y * w.float())\n        "
                                                   "return torch.ldexp(torch.round(m * 16) / 16, "
                                                   "e).to(x.dtype)"));
  EXPECT_EQ(category(coarse), "wrong_result") << summary(coarse);
}

TEST_F(torch_referee, a_result_kept_for_the_same_address_is_wrong) {
  auto result = evaluate(linear_problem,
                         linear_answer("if x.data_ptr() not in kept:\n    kept[x.data_ptr()] = "
                                       "torch.relu(self.linear(x))\nreturn kept[x.data_ptr()]",
                                       "kept = {}\n"));
  EXPECT_EQ(category(result), "wrong_result") << summary(result);
}

TEST_F(torch_referee, work_that_is_skipped_once_it_is_timed_is_found) {
  auto result = evaluate(linear_problem,
                         linear_answer("self.calls += 1\ny = torch.relu(self.linear(x))\n"
                                       "if self.calls > 30:\n    y.zero_()\nreturn y"),
                         [](wire::EvaluateRequest::Builder x) { x.initTiming().setEnabled(true); });
  // Where the first batch that is wrong has contents that no trial had, it is a wrong result alone.
  EXPECT_THAT(message(result), HasSubstr("wrong when it was timed")) << summary(result);
  EXPECT_FALSE(result.open()->getCorrect());
}

TEST_F(torch_referee, a_replay_draws_the_same_contents) {
  auto wrong = linear_answer("return torch.relu(self.linear(x)) + 1");
  auto seeded = [](wire::EvaluateRequest::Builder x) {
    auto seed = x.initSeed(32);
    for (unsigned i = 0; i < 32; ++i) seed[i] = static_cast<kj::byte>(i);
  };
  EXPECT_EQ(message(evaluate(linear_problem, wrong, seeded)),
            message(evaluate(linear_problem, wrong, seeded)));
}

TEST_F(torch_referee, the_benchmarks_mode_has_its_tolerance_and_trials) {
  auto slightly_off = linear_answer("return torch.relu(self.linear(x)) + 9e-5");
  auto result = evaluate(linear_problem, slightly_off,
                         [](wire::EvaluateRequest::Builder x) { x.setMode("kernelbench"); });
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
  EXPECT_EQ(result.open()->getCases().size(), 5u);
}

TEST_F(torch_referee, an_answer_without_a_kernel_of_the_wanted_language_is_refused) {
  auto result = evaluate(linear_problem, linear_answer("return torch.relu(self.linear(x))"),
                         [](wire::EvaluateRequest::Builder x) { x.setLanguage("triton"); });
  EXPECT_EQ(category(result), "wrong_language");
}

TEST_F(torch_referee, a_broken_problem_is_the_configurations_fault) {
  auto result =
      evaluate("import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
               "        raise ValueError('no')\ndef get_inputs():\n    return [torch.rand(3)]\n"
               "def get_init_inputs():\n    return []\n",
               linear_answer("return x"));
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION)
      << summary(result);
}

TEST_F(torch_referee, bits_that_vary_within_the_bound_are_a_warning) {
  auto result = evaluate(linear_problem, linear_answer("return torch.relu(self.linear(x)) + 1e-7 * "
                                                       "torch.rand(x.shape[0], 32)"));
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
  EXPECT_TRUE(result.open()->getDeterministic()) << summary(result);
  EXPECT_THAT(rules_of(result), Contains("bits_vary"));
}

TEST_F(torch_referee, check_finds_problems_that_decide_nothing) {
  auto problem = [](const std::string& body) {
    return "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        "
           "return " +
           body +
           "\ndef get_inputs():\n    return [torch.rand(64, 64)]\ndef get_init_inputs():\n    "
           "return []\n";
  };
  EXPECT_THAT(check(problem("torch.softmax(x, 1).sum(1)")), Contains(HasSubstr("does not depend")));
  EXPECT_THAT(check(problem("x * 0")),
              Contains(AnyOf(HasSubstr("zeros"), HasSubstr("does not depend"))));
  EXPECT_THAT(check(problem("torch.nn.functional.dropout(x, 0.5)")), Contains(HasSubstr("random")));
  // Hidden trials turn signs, unless the problem casts numbers to integers.
  EXPECT_THAT(check(problem("torch.relu(x)")), Contains(HasSubstr("hidden ones tell it apart")));
  EXPECT_THAT(check(problem("torch.relu(x)  # as before table(x.long())")),
              Contains("an unchanged input passes"));
  EXPECT_THAT(check(linear_problem), Not(Contains(HasSubstr("passes"))));
}

} // namespace torch_referee_test
} // namespace kernelmill

// What candidates are timed beside: the problem's own model, torch.compile's, or another module.

#include "messages/base/digest.hpp"
#include "messages/judged.hpp"
#include "torch_fixture.hpp"

namespace kernelmill {

namespace {

using testing::HasSubstr;

using torch_baselines = torch_fixture;

const std::string own = "return torch.relu(self.linear(x))";

void timed(wire::EvaluateRequest::Builder x, const char* baseline) {
  auto timing = x.initTiming();
  timing.setEnabled(true);
  timing.setWidest(1e3); // whether there is a time is the question
  x.setDeadlineMs(280'000);
  x.setBaseline(baseline);
}

std::string name_of(const Message<wire::EvaluateResult>& x) {
  return x.open()->getTiming().getBaseline().cStr();
}

TEST_F(torch_baselines, a_module_is_timed_beside_torch_compile_or_the_verdict_says_why_not) {
  auto result = evaluate(linear_problem, linear_answer(own), [](auto x) { timed(x, "compile"); });
  auto timing = result.open()->getTiming();
  ASSERT_TRUE(result.open()->getCorrect()) << summary(result);
  if (!timing.getMeasured()) GTEST_SKIP() << "too busy: " << summary(result);
  if (name_of(result) == "eager") {
    EXPECT_THAT(std::string{timing.getBaselineNote()}, HasSubstr("torch.compile"))
        << name_of(result);
    EXPECT_EQ(timing.getEagerMs(), 0);
    return;
  }
  EXPECT_EQ(name_of(result), "compile");
  EXPECT_STREQ(timing.getBaselineNote().cStr(), "");
  EXPECT_GT(timing.getEagerMs(), 0);
  EXPECT_TRUE(eager_speedup(timing));
}

TEST_F(torch_baselines, the_problems_own_model_needs_no_estimate) {
  auto result = evaluate(linear_problem, linear_answer(own), [](auto x) { timed(x, ""); });
  ASSERT_TRUE(result.open()->getCorrect()) << summary(result);
  EXPECT_EQ(name_of(result), "");
  EXPECT_FALSE(eager_speedup(result.open()->getTiming()));
}

TEST_F(torch_baselines, a_model_that_torch_compile_refuses_is_timed_as_it_is) {
  // It is timed as it is, whether the tracer meets an error or there is no tracer.
  const char* problem = R"(
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        if getattr(getattr(torch, "compiler", None), "is_compiling", bool)():
            raise RuntimeError("compilers are not welcome")
        return torch.relu(x) * 2


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return []
)";
  const char* answer = "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n"
                       "    def forward(self, x):\n        return torch.relu(x) * 2\n";
  auto result = evaluate(problem, answer, [](auto x) { timed(x, "compile"); });
  ASSERT_TRUE(result.open()->getCorrect()) << summary(result);
  auto timing = result.open()->getTiming();
  if (!timing.getMeasured()) GTEST_SKIP() << "too busy: " << summary(result);
  EXPECT_EQ(name_of(result), "eager");
  EXPECT_THAT(std::string{timing.getBaselineNote()}, HasSubstr("torch.compile"));
}

void beside_module(wire::EvaluateRequest::Builder x, const std::string& source) {
  timed(x, "file");
  x.setBaselineSha256(sha256_hex(source));
  x.setBaselineProduct({reinterpret_cast<const unsigned char*>(source.data()), source.size()});
}

TEST_F(torch_baselines, a_module_of_a_users_is_a_baseline_once_it_was_right_as_a_candidate) {
  auto module = linear_answer("return torch.clamp(self.linear(x), min=0)");
  for (int i = 0; i < 2; ++i) {
    auto result =
        evaluate(linear_problem, linear_answer(own), [&](auto x) { beside_module(x, module); });
    ASSERT_TRUE(result.open()->getCorrect()) << summary(result);
    auto timing = result.open()->getTiming();
    if (!timing.getMeasured()) GTEST_SKIP() << "too busy: " << summary(result);
    EXPECT_EQ(name_of(result), "file");
    EXPECT_GT(timing.getEagerMs(), 0);
  }
}

TEST_F(torch_baselines, a_module_that_is_wrong_is_no_baseline) {
  auto module = linear_answer("return self.linear(x)");
  auto result =
      evaluate(linear_problem, linear_answer(own), [&](auto x) { beside_module(x, module); });
  EXPECT_STREQ(result.open()->getFault().getCategory().cStr(), "bad_baseline") << summary(result);
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION);
  // Without a clock nothing is timed beside it.
  auto untimed = evaluate(linear_problem, linear_answer(own), [&](auto x) {
    beside_module(x, module);
    x.getTiming().setEnabled(false);
  });
  EXPECT_TRUE(untimed.open()->getCorrect()) << summary(untimed);
}

TEST_F(torch_baselines, a_language_whose_package_is_missing_is_refused_by_its_name) {
  auto result =
      evaluate(linear_problem, linear_answer(own), [&](auto x) { x.setLanguage("cute_dsl"); });
  auto fault = result.open()->getFault();
  if (std::string{fault.getCategory().cStr()} == "wrong_language")
    GTEST_SKIP() << "it is installed";
  EXPECT_STREQ(fault.getCategory().cStr(), "language_missing") << summary(result);
  EXPECT_EQ(fault.getClass(), wire::FaultClass::CONFIGURATION);
  EXPECT_THAT(std::string{fault.getHint()}, HasSubstr("pip install nvidia-cutlass-dsl"));
}

} // namespace

} // namespace kernelmill

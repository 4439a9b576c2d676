// A problem at several shapes: what is right at its own is judged at those that its task names,
// too.

#include <set>

#include "torch_fixture.hpp"

using namespace kernelmill;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace torch_shapes_test {

const char* const shaped_problem = R"(
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.linear = nn.Linear(n, m)

    def forward(self, x):
        return torch.relu(self.linear(x))


rows = 64
n, m = 96, 32
scale = 1.0


def get_inputs():
    return [torch.rand(rows, n) * scale]


def get_init_inputs():
    return [n, m]
)";

const char* const two_more = R"(, "variants": [
  {"name": "secretly_odd", "set": {"rows": 33, "n": 57}, "hidden": true},
  {"name": "tall", "set": {"rows": 77}}])";

const char* const timed_more = R"(, "variants": [
  {"name": "secretly_odd", "set": {"rows": 33}, "hidden": true, "timed": true},
  {"name": "tall", "set": {"rows": 77}}])";

std::string category(const Message<wire::EvaluateResult>& x) {
  return x.open()->getFault().getCategory();
}

std::string message(const Message<wire::EvaluateResult>& x) {
  return x.open()->getFault().getMessage();
}

std::string right = linear_answer("return torch.relu(self.linear(x))");

// Right at all shapes but those with so many rows, where `otherwise` is done.
std::string but_at(int rows, const std::string& otherwise) {
  return linear_answer("if x.shape[0] == " + std::to_string(rows) + ":\n    " + otherwise +
                       "\nreturn torch.relu(self.linear(x))");
}

void timed(wire::EvaluateRequest::Builder x) {
  auto timing = x.initTiming();
  timing.setEnabled(true);
  timing.setHalfWidth(10); // how exact they are is not the question, nor whether they say anything
  timing.setWidest(1e3);
}

class torch_shapes : public torch_fixture {
protected:
  void SetUp() override {
    torch_fixture::SetUp();
    keys_ = two_more;
  }
};

TEST_F(torch_shapes, a_right_module_has_trials_at_each) {
  auto result = evaluate(shaped_problem, right);
  auto x = result.open();
  EXPECT_TRUE(x->getCorrect()) << summary(result);
  std::vector<std::string> first; // of each shape, in order
  for (auto one : x->getCases())
    if (std::string name = one.getName(); name.ends_with("trial 1"))
      first.push_back(name + (one.getHidden() ? ", hidden, " : ", ") + one.getShape().cStr());
  EXPECT_THAT(first, ElementsAre("trial 1, float32[64, 96]", "shape tall: trial 1, float32[77, 96]",
                                 "hidden shape 1: trial 1, hidden, float32[33, 57]"));
  EXPECT_GE(x->getCaseCount(), x->getCases().size());
}

TEST_F(torch_shapes, one_that_is_wrong_at_a_named_shape_is_told_where) {
  auto result = evaluate(shaped_problem, but_at(77, "return torch.zeros(77, 32)"));
  EXPECT_EQ(category(result), "wrong_result");
  EXPECT_THAT(message(result), AllOf(HasSubstr("at shape tall (float32[77, 96]): trial 1 is wrong"),
                                     HasSubstr("output[")));
  EXPECT_THAT(result.open()->getFault().getHint().cStr(), HasSubstr("every shape"));
  EXPECT_FALSE(result.open()->getCorrect());
  auto fails = evaluate(shaped_problem, but_at(77, "raise ValueError('rows must be 64')"));
  EXPECT_THAT(message(fails), AllOf(HasSubstr("at shape tall"), HasSubstr("rows must be 64")));
  EXPECT_FALSE(fails.open()->getSealed()) << "its process has seen nothing hidden";
}

TEST_F(torch_shapes, a_hidden_one_is_told_by_number_alone) {
  for (const char* otherwise : {"return torch.zeros(33, 32)", "raise ValueError(str(x.shape))",
                                "print(x.shape); os._exit(33)"}) {
    auto result = evaluate(shaped_problem, but_at(33, otherwise));
    EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CANDIDATE);
    EXPECT_FALSE(result.open()->getCorrect()) << otherwise;
    EXPECT_TRUE(result.open()->getSealed()) << otherwise;
    EXPECT_THAT(summary(result), AllOf(HasSubstr("at hidden shape 1: it fails there"),
                                       Not(HasSubstr("33")), Not(HasSubstr("odd"))));
  }
}

TEST_F(torch_shapes, nothing_is_kept_from_one_shape_for_the_next) {
  auto result =
      evaluate(shaped_problem, linear_answer("first = not os.path.exists('/tmp/seen')\n"
                                             "if self.calls == 0 and not first:\n    x = x * 0\n"
                                             "open('/tmp/seen', 'w').close()\nself.calls += 1\n"
                                             "return torch.relu(self.linear(x))"));
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
}

TEST_F(torch_shapes, a_replay_draws_the_same_contents_at_each) {
  auto seeded = [](wire::EvaluateRequest::Builder x) {
    auto seed = x.initSeed(32);
    for (unsigned i = 0; i < 32; ++i) seed[i] = static_cast<kj::byte>(i);
  };
  auto wrong = but_at(77, "return torch.relu(self.linear(x)) + 1");
  EXPECT_EQ(message(evaluate(shaped_problem, wrong, seeded)),
            message(evaluate(shaped_problem, wrong, seeded)));
}

TEST_F(torch_shapes, what_cannot_judge_is_the_tasks_fault_before_any_candidate) {
  for (auto [variants, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"name": "same", "set": {"rows": 64}})", "variant same: failed to make a variant"},
           {R"({"name": "twice", "set": {"scale": 2.0}})", "has the inputs and arguments of"},
           {R"({"name": "large", "set": {"rows": "64"}})", "of another type"},
           {R"({"name": "none", "set": {"scale": 0.0, "rows": 8}})", "variant none: "}}) {
    keys_ = std::string{", \"variants\": ["} + variants + "]";
    auto wrong = evaluate(shaped_problem, linear_answer("return x"));
    EXPECT_EQ(wrong.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION)
        << summary(wrong);
    EXPECT_THAT(message(wrong), HasSubstr(words));
    EXPECT_EQ(wrong.open()->getCases().size(), 0u);
    EXPECT_THAT(check(shaped_problem).front(), HasSubstr(words));
  }
}

TEST_F(torch_shapes, some_are_drawn_by_the_seed_where_not_all_are_asked_for) {
  keys_ = R"(, "variants": [{"name": "a", "set": {"rows": 33}}, {"name": "b", "set": {"rows": 57}},
                            {"name": "c", "set": {"rows": 77}, "hidden": true},
                            {"name": "d", "set": {"rows": 91}}])";
  auto judged = [&](unsigned char seed) {
    auto result = evaluate(shaped_problem, right, [&](wire::EvaluateRequest::Builder x) {
      x.setShapes(2);
      auto bytes = x.initSeed(32);
      for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<kj::byte>(seed + i);
    });
    EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
    std::set<std::string> shapes;
    for (auto one : result.open()->getCases()) shapes.insert(one.getShape());
    return shapes;
  };
  auto first = judged(0);
  EXPECT_EQ(first.size(), 3u);
  EXPECT_TRUE(first.contains("float32[64, 96]")) << "the problem's own comes in any case";
  EXPECT_EQ(judged(0), first);
  std::set<std::set<std::string>> all{first};
  for (unsigned char seed = 1; seed < 12 && all.size() < 2; ++seed) all.insert(judged(seed));
  EXPECT_GT(all.size(), 1u);
}

TEST_F(torch_shapes, the_benchmarks_mode_has_its_one_shape) {
  auto result = evaluate(shaped_problem, but_at(77, "return torch.zeros(77, 32)"),
                         [](wire::EvaluateRequest::Builder x) { x.setMode("kernelbench"); });
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
}

TEST_F(torch_shapes, the_mean_of_those_that_are_timed_is_paid) {
  keys_ = timed_more;
  auto result = evaluate(shaped_problem, right, timed);
  auto timing = result.open()->getTiming();
  if (timing.getNotTimed() == wire::NotTimed::MACHINE) GTEST_SKIP() << timing.getNote().cStr();
  ASSERT_TRUE(timing.getMeasured()) << summary(result);
  double product = 1;
  std::vector<std::string> names;
  for (auto x : timing.getKinds())
    if (std::string name = x.getName(); name.find("shape") != name.npos) {
      names.push_back(name);
      product *= x.getReferenceMs() / x.getCandidateMs();
    }
  EXPECT_THAT(names, ElementsAre("shape base", "hidden shape 1"));
  auto speedup = timing.getSpeedup().getEstimate();
  EXPECT_NEAR(product, speedup * speedup, 1e-6 * product);
  EXPECT_NEAR(timing.getReferenceMs() / timing.getCandidateMs(), speedup, 1e-6 * speedup);
  EXPECT_THAT(timing.getShape().cStr(), HasSubstr("float32[64, 96] and 1 more shape"));
}

TEST_F(torch_shapes, garbage_that_comes_fast_at_a_timed_hidden_shape_is_refused) {
  keys_ = timed_more;
  auto result = evaluate(shaped_problem,
                         linear_answer("self.calls += 1\n"
                                       "if x.shape[0] == 33 and self.calls > 30:\n"
                                       "    return torch.empty(33, 32)\n"
                                       "return torch.relu(self.linear(x))"),
                         timed);
  EXPECT_FALSE(result.open()->getCorrect()) << summary(result);
  EXPECT_EQ(category(result), "wrong_result");
  EXPECT_THAT(message(result), AllOf(HasSubstr("at hidden shape 1"), Not(HasSubstr("33"))));
  EXPECT_FALSE(result.open()->getTiming().getMeasured());
}

} // namespace torch_shapes_test

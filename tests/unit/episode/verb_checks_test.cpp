// What a task asks for beyond right results: what is said of counters, and another strategy.

#include "actors/episode/verb_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/episode/same_text.hpp"
#include "messages/message.hpp"

namespace kernelmill {
namespace verb_checks_test {

using testing::HasSubstr;

struct counted {
  const char* name;
  double value;
};

Message<wire::EvaluateResult> evaluated(std::initializer_list<counted> counters,
                                        double candidate_ms = 0, double reference_ms = 0) {
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder out) {
    out.setCorrect(true);
    auto list = out.initCounters(static_cast<unsigned>(counters.size()));
    unsigned i = 0;
    for (const auto& x : counters) {
      list[i].setName(x.name);
      list[i++].setValue(x.value);
    }
    out.initTiming().setMeasured(candidate_ms > 0);
    out.getTiming().setCandidateMs(candidate_ms);
    out.getTiming().setReferenceMs(reference_ms);
  });
}

task diagnose_task() {
  task x;
  x.verb = "diagnose";
  x.evidence = {
      {"dram_bytes", false, 2, false}, {"launches", true, 1, false}, {"time", false, 2, true}};
  return x;
}

verb_facts facts_of(const task& x, const std::vector<std::string>& said,
                    const Message<wire::EvaluateResult>& evaluation) {
  parsed_completion parsed;
  parsed.evidence = said;
  return verb_facts_of(x, parsed, *evaluation.open());
}

TEST(verb_checks, statements_are_held_against_the_task) {
  auto none = evaluated({});
  auto x = facts_of(diagnose_task(), {"dram_bytes falls", "Launches: rises"}, none);
  ASSERT_EQ(x.checks.size(), 3u);
  EXPECT_TRUE(x.checks[0].right && x.checks[1].right);
  x = facts_of(diagnose_task(), {"dram_bytes rises", "time falls"}, none);
  EXPECT_FALSE(x.checks[0].right || x.checks[1].right);
  EXPECT_EQ(x.checks[1].note, "nothing was said of it");
  // An answer that says both says nothing.
  x = facts_of(diagnose_task(), {"dram_bytes falls", "dram_bytes rises"}, none);
  EXPECT_FALSE(x.checks[0].right);
  EXPECT_THAT(right_statements(diagnose_task()),
              testing::ElementsAre("dram_bytes falls", "launches rises"));
}

TEST(verb_checks, hidden_evidence_counts_where_it_was_measured) {
  auto check = [](double candidate, double reference) {
    return facts_of(diagnose_task(), {}, evaluated({}, candidate, reference)).checks[2];
  };
  EXPECT_TRUE(check(1, 2).right);
  EXPECT_FALSE(check(1.1, 2).right);
  EXPECT_FALSE(check(2, 1).right);
  auto unknown = check(0, 0);
  EXPECT_TRUE(unknown.right && unknown.hidden);
  EXPECT_EQ(unknown.note, "not measured");
  // A kernel that made itself hard to time does not get past it.
  auto untimed = build<wire::EvaluateResult>([](wire::EvaluateResult::Builder out) {
    out.initTiming().setNotTimed(wire::NotTimed::CANDIDATE);
  });
  EXPECT_FALSE(facts_of(diagnose_task(), {}, untimed).checks[2].right);
}

task reformulate_task() {
  task x;
  x.verb = "reformulate";
  x.starter = "void solve(float* y, int n) { for (int i = 0; i < n; ++i) y[i] = y[i] / n + 1; }";
  x.strategy = {{"code_divisions", false, 2, false}};
  return x;
}

std::string same_strategy(const task& x, const std::string& kernel,
                          const Message<wire::EvaluateResult>& evaluation) {
  parsed_completion parsed;
  parsed.kernel = kernel;
  return verb_facts_of(x, parsed, *evaluation.open()).same_strategy;
}

TEST(verb_checks, a_strategy_has_changed_where_code_and_counters_have) {
  auto x = reformulate_task();
  EXPECT_THAT(same_strategy(x, "", evaluated({{"starter_code_kept", 0.9}})), HasSubstr("90 %"));
  EXPECT_EQ(same_strategy(x, "", evaluated({{"starter_code_kept", 0.3}})), "");
  EXPECT_EQ(same_strategy(x, "",
                          evaluated({{"starter_code_kept", 0.3},
                                     {"code_divisions", 1},
                                     {"starter_code_divisions", 2}})),
            "");
  EXPECT_THAT(same_strategy(x, "",
                            evaluated({{"starter_code_kept", 0.3},
                                       {"code_divisions", 2},
                                       {"starter_code_divisions", 2}})),
              HasSubstr("code_divisions"));
}

TEST(verb_checks, without_machine_code_the_text_is_compared_or_nothing) {
  auto x = reformulate_task();
  EXPECT_EQ(same_strategy(x, x.starter, evaluated({})), "");
  x.contract = contract_kind::torch;
  x.starter = "class ModelNew(Module):\n    def forward(self, x):\n        y = x.exp()\n"
              "        return y / y.sum(dim=1)\n";
  EXPECT_THAT(
      same_strategy(x,
                    "class ModelNew(Module):\n    # fast\n    def forward(self, inputs):\n"
                    "        parts = inputs.exp()\n        return parts / parts.sum(dim=1)\n",
                    evaluated({})),
      HasSubstr("100 % of its text"));
  EXPECT_EQ(same_strategy(x,
                          "class ModelNew(Module):\n    def forward(self, x):\n"
                          "        return torch.softmax(x, dim=1)\n",
                          evaluated({})),
            "");
  // Neither what is added to a copy nor its length makes another program of it.
  std::string added = "_ = [" + std::string(2000, '+') + "]\n";
  EXPECT_THAT(same_strategy(x, x.starter + "def more(a, b):\n    return a * b - a / b + 1\n",
                            evaluated({})),
              HasSubstr("100 % of its text"));
  EXPECT_THAT(same_strategy(x, x.starter + added + added + added, evaluated({})),
              HasSubstr("too long"));
}

constexpr const char* two_passes = R"(import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + columns, mask=columns < n, other=float("-inf"))
    top = tl.max(values, axis=0)
    parts = tl.exp(values - top)
    tl.store(y + row * n + columns, parts / tl.sum(parts, axis=0), mask=columns < n)
)";

TEST(text_in_common, sees_that_loops_changed_places) {
  std::string starter =
      "for (int i = 0; i < n; ++i) for (int j = 0; j < m; ++j) y[j] += x[i * m + j];";
  std::string swapped =
      "for (int j = 0; j < m; ++j) for (int i = 0; i < n; ++i) y[j] += x[i * m + j];";
  std::string renamed =
      "for (int a = 0; a < k; ++a) for (int b = 0; b < l; ++b) y[b] += x[a * l + b];";
  EXPECT_EQ(text_in_common(starter, renamed, false), 1);
  EXPECT_LT(*text_in_common(starter, swapped, false), 0.95);
}

TEST(text_in_common, sees_through_names_and_comments) {
  std::string renamed = two_passes;
  for (auto [from, to] :
       {std::pair{"columns", "where"}, std::pair{"values", "taken"}, std::pair{"kernel", "softmax"},
        std::pair{"    top", "    # one pass\n    top"}})
    for (size_t at = 0; (at = renamed.find(from, at)) != renamed.npos; at += std::string{to}.size())
      renamed.replace(at, std::string{from}.size(), to);
  EXPECT_GT(*text_in_common(two_passes, renamed, true), 0.95);
  EXPECT_LT(*text_in_common(two_passes, R"(import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
)",
                            true),
            0.5);
  EXPECT_FALSE(text_in_common(std::string(20'000, '+'), "x", false));
}

} // namespace verb_checks_test
} // namespace kernelmill

// What g++ makes of a starter and of answers to it: which of them compute in another way.

#include "gpu/examine/compiled_code.hpp"

#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "gpu/examine/code_checks.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "tests/unit/examine/row_sum.hpp"

namespace kernelmill {
namespace compiled_code_test {

TEST(read_host_code, counts_what_a_function_refers_to_and_nothing_else) {
  auto x = read_host_code("solve:\n"
                          ".LFB1:\n"
                          "\tpushq\t%rbx\n"
                          ".L3:\n"
                          "\tvmovss\t(%rdi,%rax,4), %xmm0\n"
                          "\tvdivss\t%xmm1, %xmm0, %xmm0\n"
                          "\tcall\tpart\n"
                          "\tcmpq\t%rax, %rdx\n"
                          "\tjne\t.L3\n"
                          "#APP\n\tidivl\t%ecx\n#NO_APP\n"
                          "\tret\n"
                          "part:\n"
                          "\tvaddps\t%ymm1, %ymm0, %ymm0\n"
                          "\tjmp\texpf@PLT\n"
                          "unused:\n"
                          "\tidivl\t%ecx\n",
                          "solve");
  EXPECT_EQ(x.instructions, 9u);
  EXPECT_EQ(x.vector_instructions, 1u);
  EXPECT_EQ(x.divisions, 1u);
  EXPECT_EQ(x.calls, 2u);
  EXPECT_EQ(x.branches, 1u);
  ASSERT_EQ(x.blocks.size(), 2u);
  EXPECT_EQ(x.blocks[0],
            (std::vector<std::string>{"call part", "cmpq", "jump", "vdivss", "vmovss"}));
  EXPECT_EQ(x.blocks[1], std::vector<std::string>{"vaddps"});
  EXPECT_TRUE(read_host_code("other:\n\tret\n", "solve").blocks.empty());
}

TEST(kept_share, is_of_the_starters_instructions) {
  compiled_code starter, other;
  starter.blocks = {{"a", "b", "c"}, {"d"}};
  other.blocks = {{"d"}, {"a", "x", "y"}, {"a", "b", "c"}};
  EXPECT_EQ(kept_share(starter, starter), 1);
  EXPECT_EQ(kept_share(starter, other), 1);
  EXPECT_EQ(kept_share(other, starter), 4.0 / 7);
  EXPECT_EQ(kept_share(starter, {}), 0);
  EXPECT_EQ(kept_share({}, starter), 0);
}

std::string read_source(const std::string& path) {
  std::ifstream in{std::string{std::getenv("KERNELMILL_SOURCE_DIR")} + "/" + path};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

class code_of : public testing::Test {
protected:
  code_of()
      : processes_(*spawner::launch(std::string{std::getenv("KERNELMILL_BIN_DIR")} +
                                    "/kernelmill-spawner")),
        walls_(processes_) {}

  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "the assembly of this machine is not read";
#endif
  }

  const compiled_code& compiled(const std::string& source, const code_compilers& by,
                                const std::string& function = "solve") {
    auto& known = known_[function + " of " + source];
    if (!known.blocks.empty()) return known;
    auto x = compile_code(walls_, by, code_build::plain, source, function, 120'000);
    EXPECT_TRUE(x) << render(x.error()) << source;
    return known = x.value_or(compiled_code{});
  }
  double kept_of(const std::string& starter, const std::string& candidate,
                 const code_compilers& by = {}) {
    return kept_share(compiled(starter, by), compiled(candidate, by, ""));
  }

  spawner processes_;
  sandbox walls_;
  std::map<std::string, compiled_code> known_; // by source
};

TEST_F(code_of, copies_of_a_starter_keep_its_code) {
  auto starter = read_source("configs/tasks/native/online_softmax/starter.cpp");
  auto renamed =
      std::regex_replace(starter, std::regex{"\\b(top|sum|in|out|i|j)\\b"}, "$1_of_mine");
  auto reordered = replaced(renamed, "    float sum_of_mine = 0;\n", "");
  reordered =
      replaced(reordered, "    const float* in", "    float sum_of_mine = 0;\n    const float* in");
  auto padded = replaced(reordered, "    float sum", "    sink = sink + 1;\n    float sum");
  padded = replaced(padded, "  for (int i", "  volatile int sink = 0;\n  for (int i");
  EXPECT_GT(kept_of(starter,
                    "// an online softmax\nstatic int unused(int a) { return a % 7; }\n" + padded),
            0.9);
  // Words to the compiler do not make another strategy.
  EXPECT_GT(kept_of(starter, "#pragma GCC optimize(\"O3\", \"unroll-loops\")\n" + starter), 0.95);
  EXPECT_GT(kept_of(starter, replaced(starter, "extern \"C\" void",
                                      "extern \"C\" __attribute__((optimize(\"O3\"))) void")),
            0.95);
  EXPECT_GT(
      kept_of(starter, replaced(starter, "  for (int i", "#pragma omp parallel for\n  for (int i")),
      0.75);
}

// What a copy does to look like something else.
TEST_F(code_of, a_disguised_copy_is_still_one) {
  auto starter = read_source("configs/tasks/native/online_softmax/starter.cpp");
  auto work = replaced(starter, "extern \"C\" void solve(", "static void work(");
  const std::string call = "extern \"C\" void solve(const float* x, float* y, int rows, int cols) ";
  EXPECT_GT(kept_of(starter, work +
                                 "static void (*volatile go)(const float*, float*, int, int) = "
                                 "work;\n" +
                                 call + "{ go(x, y, rows, cols); }\n"),
            0.9);
  EXPECT_GT(
      kept_of(starter, replaced(starter, "extern \"C\" void solve(", "extern \"C\" void work(") +
                           call + "__attribute__((alias(\"work\")));\n"),
      0.9);
  for (const char* words :
       {"_Pragma(\"GCC optimize(\\\"O3\\\")\")\n", "%:pragma GCC optimize(\"O3\")\n",
        "#/**/pragma GCC optimize(\"O3\")\n"})
    EXPECT_GT(kept_of(starter, words + starter), 0.95) << words;
  EXPECT_GT(kept_of(starter, replaced(starter, "  for (int i", "#pragma omp simd\n  for (int i")),
            0.75);
  // Both builds see the same macros.
  EXPECT_GT(kept_of(starter, "#ifdef optimize\nint other;\n#else\n" + starter + "#endif\n"), 0.95);
  EXPECT_GT(kept_of(starter, "#ifndef __OPTIMIZE__\nint other;\n#else\n" + starter + "#endif\n"),
            0.95);
  for (const auto& text :
       {replaced(starter, "    for (int j", "    asm volatile(\"#\");\n    for (int j"),
        std::string{"int"}}) {
    auto x = compile_code(walls_, {}, code_build::plain, text, "", 120'000);
    ASSERT_FALSE(x) << text;
    EXPECT_EQ(x.error().cls, fault_class::candidate);
  }
}

TEST_F(code_of, a_function_may_be_called_optimize) {
  auto source = "static int optimize(int n) { return n * 3; }\n"
                "extern \"C\" void solve(float* y, int n) { y[0] = optimize(n); }\n";
  EXPECT_FALSE(compiled(source, {}).blocks.empty());
}

TEST_F(code_of, another_way_to_the_same_results_does_not) {
  auto starter = read_source("configs/tasks/native/online_softmax/starter.cpp");
  for (const char* name : {"online.cpp", "fast.cpp"})
    EXPECT_LT(
        kept_of(starter,
                read_source(std::string{"configs/policies/quickstart/online_softmax/"} + name)),
        0.5)
        << name;
  starter = read_source("configs/tasks/native/slow_column_sum/starter.cpp");
  EXPECT_LT(kept_of(starter, read_source("configs/policies/quickstart/slow_column_sum/fast.cpp")),
            0.5);
}

TEST_F(code_of, kernels_of_a_gpu_are_compared_by_their_ptx) {
  if (find_nvcc().empty()) GTEST_SKIP() << "there is no nvcc";
  const code_compilers by{{}, {"cuda", "sm_90", {}}};
  auto starter = read_source("configs/tasks/native/online_softmax/starter.cu");
  auto renamed = std::regex_replace(starter, std::regex{"\\b(top|sum|in|out|j)\\b"}, "$1_of_mine");
  EXPECT_GT(kept_of(starter, "#include <cmath>\n#pragma unroll\n" + renamed, by), 0.95);
  EXPECT_LT(kept_of(starter, read_source("configs/policies/gpu_quickstart/single_pass.cu"), by),
            0.5);
}

TEST_F(code_of, an_evaluation_has_the_counters_that_its_task_names) {
  auto what = std::make_shared<task>(*row_sum(contract_kind::native, "cpu"));
  what->verb = "reformulate";
  what->starter = "extern \"C\" void solve(const float* x, float* y, int rows, int cols) {\n"
                  "  for (int i = 0; i < rows * cols; ++i) y[i / cols] += x[i] / cols;\n}\n";
  what->strategy = {{"code_divisions", false, 1, false}};
  ASSERT_TRUE(compares_code(*what));
  code_checker by{walls_};
  auto judged = build<wire::EvaluateResult>([](wire::EvaluateResult::Builder out) {
    out.setCorrect(true);
    out.setDeterministic(true);
  });
  auto counters_of = [&](const std::string& source, double until) {
    std::map<std::string, double> result;
    auto found = with_code_counters(by, *what, source, judged, until);
    for (auto x : found.open()->getCounters()) result[x.getName()] = x.getValue();
    for (auto x : found.open()->getMissing()) result[x] = -1;
    return result;
  };
  auto same = counters_of(what->starter, now_seconds() + 60);
  EXPECT_EQ(same["starter_code_kept"], 1);
  EXPECT_GT(same["starter_code_divisions"], 0);
  EXPECT_EQ(same["code_divisions"], same["starter_code_divisions"]);
  // What is known takes no time.
  EXPECT_EQ(counters_of(what->starter, now_seconds() - 1), same);
  auto late = counters_of("int late;", now_seconds() - 1);
  EXPECT_EQ(late.count("starter_code_kept"), 0u);
  EXPECT_EQ(counters_of("int broken", now_seconds() + 60)["starter_code_kept"], 1);
  EXPECT_EQ(late.count("code of the candidate: no time is left"), 1u);
}

} // namespace compiled_code_test
} // namespace kernelmill

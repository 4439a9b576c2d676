#include "retrieval/guard/leak_guard.hpp"

#include <gtest/gtest.h>

#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {
namespace leak_guard_test {

using test::row_max_kernel;
using test::row_sum_kernel;
using test::row_sum_renamed;
using test::transpose_kernel;

TEST(LeakGuard, NamesLayoutAndCommentsDoNotHideADuplicate) {
  auto x = compare(shingles_of(row_sum_kernel), shingles_of(row_sum_renamed));
  EXPECT_GE(x.jaccard, 0.95);
}

TEST(LeakGuard, DifferentKernelsOfOneSignatureStayApart) {
  auto sum = shingles_of(row_sum_kernel), max = shingles_of(row_max_kernel),
       transpose = shingles_of(transpose_kernel);
  EXPECT_FALSE(near_duplicate(sum, max));
  EXPECT_FALSE(near_duplicate(sum, transpose));
  EXPECT_FALSE(near_duplicate(max, transpose));
}

TEST(LeakGuard, ASolutionInsideALongerTextIsFound) {
  auto wrapped = "static float helper(float a) { return expf(a) * 3; }\n" + row_sum_kernel +
                 "int unrelated(int n) { return n > 7 ? n * 13 : abs(n - 2) / 5; }\n"
                 "void log_it(const char* text) { printf(\"%s\", text); fflush(stdout); }\n";
  EXPECT_TRUE(near_duplicate(shingles_of(row_sum_kernel), shingles_of(wrapped)));
}

TEST(LeakGuard, ATinyLoopIsNoProofOfADuplicate) {
  auto tiny = shingles_of("for (int i = 0; i < n; ++i) y[i] = x[i];");
  auto longer =
      shingles_of("void f() { for (int i = 0; i < n; ++i) y[i] = x[i]; " + transpose_kernel);
  EXPECT_FALSE(near_duplicate(tiny, longer));
}

TEST(LeakGuard, StrangeBytesAreTokensLikeOthers) {
  EXPECT_TRUE(shingles_of("").empty());
  EXPECT_TRUE(shingles_of("// only a comment\n/* and an open one").empty());
  EXPECT_EQ(shingles_of("a").size(), 1U);
  EXPECT_FALSE(shingles_of(std::string("\0\xff\"\\", 4)).empty());
  EXPECT_FALSE(shingles_of("\"an open string\\").empty());
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "__restrict__ ";
  EXPECT_TRUE(shingles_of(deep).empty());
}

TEST(LeakGuard, EntriesOfTheAskingTaskAreWithheldWhateverTheyHold) {
  leak_guard guard;
  EXPECT_TRUE(guard.withholds("native/row_sum", "native/row_sum", {}));
  EXPECT_FALSE(guard.withholds("native/row_sum", "native/transpose", {}));
  EXPECT_FALSE(guard.withholds("", "native/row_sum", {}));
}

TEST(LeakGuard, DuplicatesOfASolutionAreWithheldFromItsTaskOnly) {
  leak_guard guard;
  guard.add_solution("native/row_sum", row_sum_kernel);
  auto renamed = shingles_of(row_sum_renamed);
  EXPECT_TRUE(guard.withholds("native/row_sum", "native/other", renamed));
  EXPECT_TRUE(guard.withholds("native/row_sum", "", renamed)) << "a card may hold it too";
  EXPECT_FALSE(guard.withholds("native/softmax", "native/other", renamed));
  EXPECT_FALSE(guard.withholds("native/row_sum", "native/x", shingles_of(transpose_kernel)));
}

TEST(LeakGuard, SolutionsThatResembleAKnownOneCostNothing) {
  leak_guard guard;
  guard.add_solution("a", row_sum_kernel);
  guard.add_solution("a", row_sum_renamed);
  guard.add_solution("a", transpose_kernel);
  guard.add_solution("", row_sum_kernel);
  EXPECT_EQ(guard.solutions(), 2U);
}

TEST(LeakGuard, RelatedTasksShareTheirSolutions) {
  leak_guard guard;
  guard.add_solution("native/softmax", row_sum_kernel);
  guard.add_solution("native/online_softmax", transpose_kernel);
  guard.relate("native/softmax", "native/online_softmax");
  guard.relate("native/online_softmax", "native/softmax_debug");
  for (const char* asking : {"native/softmax", "native/online_softmax", "native/softmax_debug"}) {
    EXPECT_TRUE(guard.withholds(asking, "native/softmax", {})) << asking;
    EXPECT_TRUE(guard.withholds(asking, "native/online_softmax", {})) << asking;
    EXPECT_TRUE(guard.withholds(asking, "native/x", shingles_of(row_sum_renamed))) << asking;
    EXPECT_TRUE(guard.withholds(asking, "native/x", shingles_of(transpose_kernel))) << asking;
    EXPECT_FALSE(guard.withholds(asking, "native/x", shingles_of(row_max_kernel))) << asking;
  }
  EXPECT_FALSE(guard.withholds("native/x", "native/softmax", {}));
}

// A policy could leave a solution for another task's prompts in a comment of an accepted kernel.
TEST(LeakGuard, ASolutionInACommentOrATextIsFound) {
  leak_guard guard;
  guard.add_solution("native/row_sum", row_sum_kernel);
  auto asks = asking("native/row_sum", "");
  std::string lines = "// ";
  for (char c : row_sum_renamed) lines += c == '\n' ? "\n// " : std::string(1, c);
  for (const std::string& text :
       {transpose_kernel + lines, "/*" + row_sum_kernel + "*/" + transpose_kernel,
        "import torch\nsource = \"\"\"" + row_sum_kernel +
            "\"\"\"\ndef forward(x):\n    return x\n",
        "'''" + row_sum_kernel}) {
    auto own = shingles_of(text);
    EXPECT_TRUE(guard.withholds(asks, {"t/x", {}, {}, text, {}, &own})) << text;
  }
  for (const std::string& text :
       {transpose_kernel + "// a sum of each row, by four chains\n", std::string{"\"\\"},
        std::string{"/*"}, std::string{"//"}, std::string{"\"\"\"\\"}}) {
    auto own = shingles_of(text);
    EXPECT_FALSE(guard.withholds(asks, {"t/x", {}, {}, text, {}, &own})) << text;
  }
}

TEST(LeakGuard, ProblemsAreKnownByNameAcrossSuitesAndLanguages) {
  EXPECT_EQ(problem_name("kernelbench/level1/19_ReLU"), "relu");
  EXPECT_EQ(problem_name("relu_cuda_v2.cu"), "relu");
  EXPECT_EQ(problem_name("native/row_sum"), "rowsum");
  EXPECT_EQ(problem_name("kernelbook/17"), "");
  EXPECT_EQ(problem_name("others/Model_New.py"), "");
  EXPECT_EQ(problem_name(""), "");
  leak_guard guard;
  shingle_set none;
  auto asks = asking("native/row_sum", "");
  EXPECT_TRUE(guard.withholds(asks, {"triton/row_sum", {}, {}, {}, {}, &none}));
  EXPECT_FALSE(guard.withholds(asks, {"triton/row_max", {}, {}, {}, {}, &none}));
  EXPECT_FALSE(guard.withholds(asking("", ""), {"triton/row_sum", {}, {}, {}, {}, &none}));
}

TEST(LeakGuard, TheSameOperatorsAreTheSameComputationInAnyOrder) {
  EXPECT_TRUE(nearly_same_computation("linear; relu", "linear; relu"));
  EXPECT_TRUE(nearly_same_computation("exp; tanh; add", "tanh; exp; add"));
  EXPECT_FALSE(nearly_same_computation("linear; relu", "linear; relu; relu"));
  EXPECT_FALSE(nearly_same_computation("", ""));
  std::string deep = "linear; relu";
  for (int i = 0; i < 10; ++i) deep += "; linear; relu";
  EXPECT_TRUE(nearly_same_computation(deep, deep + "; dropout")) << "a tenth may differ";
  EXPECT_FALSE(nearly_same_computation(deep, deep + "; tanh; tanh; tanh; tanh"));
}

TEST(LeakGuard, CodeThatNothingRecognizedIsComparedAsText) {
  auto problem = [](const std::string& name, const std::string& call) {
    return "import torch\nimport odd\nclass " + name +
           "(torch.nn.Module):\n"
           "    def forward(self, " +
           name +
           "_x):\n"
           "        a = odd." +
           call + "(" + name +
           "_x)\n"
           "        b = odd.mix(a, a, 3)\n        return odd.fold(b + a, 2 * b, a)\n";
  };
  auto asks = asking("t/a", problem("First", "spread"));
  EXPECT_TRUE(asks.signature.empty());
  EXPECT_TRUE(computes_the_same(asks, problem("Second", "spread"), {}));
  EXPECT_FALSE(computes_the_same(asks, "import torch\ndef other(x):\n    return odd.run(x)\n", {}));
}

} // namespace leak_guard_test
} // namespace kernelmill

#include "actors/episode/patch/patch_kind.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace kernelmill {
namespace patch_kind_test {

constexpr auto cpp = source_language::cpp;
constexpr auto python = source_language::python;

const std::string kernel = R"cu(#include <cuda_runtime.h>
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = expf(x[i]) * 2.0f;
}
static int blocks(int n) { return (n + 255) / 256; }
extern "C" void solve(const float* x, float* y, int n) {
  scale<<<blocks(n), 256>>>(x, y, n);
}
)cu";

const std::string module = R"py(import torch

def helper(x, dim):
    return torch.softmax(x, dim=dim)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        total = helper(x, 1)
        return total
)py";

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

text_change cpp_change(const std::string& from, const std::string& to) {
  return text_change_of(kernel, with(kernel, from, to), cpp);
}

text_change python_change(const std::string& from, const std::string& to) {
  return text_change_of(module, with(module, from, to), python);
}

TEST(patch_kind, comments_and_spaces_are_no_change) {
  EXPECT_EQ(cpp_change("  if (i", "  // inside\n  if ( i"), text_change::none);
  EXPECT_EQ(python_change("  return total", "  return total  # all"), text_change::none);
  EXPECT_EQ(text_change_of("", "", cpp), text_change::none);
  EXPECT_EQ(cpp_change("2.0f", "3.0f"), text_change::other);
}

TEST(patch_kind, prints_assertions_and_counters_are_instrumentation) {
  EXPECT_EQ(cpp_change("  if (i < n)", "  printf(\"%d\", i);\n  if (i < n)"),
            text_change::instrumentation);
  EXPECT_EQ(cpp_change("#include <cuda_runtime.h>\n",
                       "#include <cuda_runtime.h>\n#include <cstdio>\n#include <cassert>\n"),
            text_change::instrumentation);
  EXPECT_EQ(cpp_change("  if (i < n)", "  assert(n > 0);\n  if (i == 0) printf(\"first\");\n"
                                       "  if (i == 1) { printf(\"%d\", n); }\n  if (i < n)"),
            text_change::instrumentation);
  auto counted =
      with(with(kernel, "__global__ void", "__device__ unsigned seen = 0;\n__global__ void"),
           "  if (i < n)", "  atomicAdd(&seen, 1);\n  if (i < n)");
  EXPECT_EQ(text_change_of(kernel, counted, cpp), text_change::instrumentation);
  EXPECT_EQ(text_change_of(counted, kernel, cpp), text_change::instrumentation) << "taken out";
  EXPECT_EQ(
      python_change("        return total",
                    "        if x.numel() > 3:\n            print(total)\n        return total"),
      text_change::instrumentation);
}

TEST(patch_kind, what_the_program_reads_is_no_instrumentation) {
  EXPECT_EQ(cpp_change("  if (i < n)", "  int seen = 0;\n  if (i < n + seen)"), text_change::other);
  EXPECT_EQ(cpp_change("  if (i < n) y", "  if (i == 0) { y[0] = 1; }\n  if (i < n) y"),
            text_change::other);
  EXPECT_EQ(cpp_change("  if (i < n) y[i] = expf(x[i]) * 2.0f;",
                       "  if (n > 4) {\n  if (i < n) y[i] = expf(x[i]) * 2.0f;\n  }"),
            text_change::other);
  EXPECT_EQ(cpp_change("  if (i < n)", "  float early = load(x, i);\n  if (i < n)"),
            text_change::other);
}

TEST(patch_kind, renaming_and_reordering_are_a_refactor) {
  EXPECT_EQ(cpp_change("blocks", "grid_size"), text_change::refactor);
  auto moved = with(kernel, "static int blocks(int n) { return (n + 255) / 256; }\n", "");
  moved =
      with(moved, "__global__", "static int blocks(int n) { return (n + 255) / 256; }\n__global__");
  EXPECT_EQ(text_change_of(kernel, moved, cpp), text_change::refactor);
  EXPECT_EQ(python_change("total", "result"), text_change::refactor);
  EXPECT_EQ(python_change("helper", "soft"), text_change::refactor);
}

TEST(patch_kind, names_that_others_own_cannot_be_renamed) {
  EXPECT_EQ(cpp_change("expf", "sinf"), text_change::other);
  EXPECT_EQ(cpp_change("float", "half"), text_change::other);
  EXPECT_EQ(cpp_change("threadIdx.x", "threadIdx.y"), text_change::other);
  EXPECT_EQ(cpp_change("blocks(n), 256", "blocks(n), n"), text_change::other);
  EXPECT_EQ(python_change("softmax", "sigmoid"), text_change::other);
  EXPECT_EQ(python_change("dim=dim", "axis=dim"), text_change::other);
  EXPECT_EQ(text_change_of(
                "void f() { for (int i = 0; i < a; ++i) for (int j = 0; j < b; ++j) g(); }",
                "void f() { for (int j = 0; j < b; ++j) for (int i = 0; i < a; ++i) g(); }", cpp),
            text_change::other)
      << "loops that changed places";
}

TEST(patch_kind, verdicts_tell_fixes_from_transforms) {
  using enum text_change;
  EXPECT_STREQ(patch_kind_of(none, false, true), "no_op");
  EXPECT_STREQ(patch_kind_of(other, false, true), "bug_fix");
  EXPECT_STREQ(patch_kind_of(instrumentation, false, true), "bug_fix");
  EXPECT_STREQ(patch_kind_of(refactor, true, {}), "refactor");
  EXPECT_STREQ(patch_kind_of(other, true, false), "perf_transform");
  EXPECT_STREQ(patch_kind_of(other, true, {}), "perf_transform");
  EXPECT_STREQ(patch_kind_of(other, false, {}), "");
  EXPECT_STREQ(patch_kind_of(other, {}, true), "");
  EXPECT_STREQ(patch_kind_of("int a;", "int a; // b", cpp, true, true), "no_op");
}

TEST(patch_kind, any_bytes_have_a_kind) {
  std::mt19937 random{3};
  const std::string alphabet = "ab(){}[];#\n\t\"'\\R/*= +if_:@";
  for (int round = 0; round < 2000; ++round) {
    auto draw = [&] {
      std::string x;
      for (size_t i = random() % 40; i > 0; --i) x += alphabet[random() % alphabet.size()];
      return x;
    };
    auto a = draw(), b = draw();
    for (auto language : {cpp, python}) {
      text_change_of(a, b, language);
      EXPECT_EQ(text_change_of(a, a, language), text_change::none);
    }
  }
}

} // namespace patch_kind_test
} // namespace kernelmill

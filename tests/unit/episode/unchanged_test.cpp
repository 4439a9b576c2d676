#include "actors/episode/unchanged.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/episode/patch/normalized.hpp"
#include "actors/episode/prompt.hpp"
#include "actors/episode/prompt_parts.hpp"
#include "messages/base/files.hpp"
#include "messages/message.hpp"

namespace kernelmill {
namespace unchanged_test {

constexpr const char* problem = R"py(import torch
import torch.nn as nn

class Model(nn.Module):
    """A softmax."""
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        return torch.softmax(x, dim=1)  # over rows

def get_inputs():
    return [torch.randn(16, 16)]
)py";

task torch_task() {
  task x;
  x.id = "kernelbench/1";
  x.contract = contract_kind::torch;
  x.prompt = "Make it faster.";
  x.torch.code = problem;
  x.terms.backend = "cuda";
  return x;
}

task native_task() {
  task x;
  x.id = "native/none";
  x.contract = contract_kind::native;
  x.starter =
      "// adds\n#include <cmath>\nextern \"C\" void solve(const float* x, float* y, int n) {\n"
      "  for (int i = 0; i < n; ++i) y[i] = x[i] + 1;\n}\n";
  return x;
}

TEST(unchanged, what_a_tool_found_is_shown_too) {
  auto x = native_task();
  const shown_code before{x, "no example"};
  auto after = before;
  std::string found;
  append_fenced(found, "int other() { return 7; }", "cpp", 1000);
  after.show("### of another task\n" + found + "[steps left 3]\n");
  EXPECT_EQ(before.copied_in("int other() { return 7; }"), "");
  EXPECT_EQ(after.copied_in("int other() { /* mine */ return 7; }"), "what a tool found");
  EXPECT_EQ(after.copied_in(x.starter), "the starter");
}

TEST(unchanged, comments_and_spaces_of_cpp_say_nothing) {
  EXPECT_EQ(normalized_cpp("int  a /* b */ = 1 ; // c\nint b;"), normalized_cpp("int a=1;int b;"));
  EXPECT_EQ(normalized_cpp("#include <a>\nint a;"), "#include<a>\nint a;");
  EXPECT_NE(normalized_cpp("int a = 1;"), normalized_cpp("int a = 2;"));
  EXPECT_NE(normalized_cpp("f(\"a b\")"), normalized_cpp("f(\"ab\")"));
  EXPECT_NE(normalized_cpp("x = R\"(// a)\";"), normalized_cpp("x = R\"(// b)\";"));
  EXPECT_EQ(normalized_cpp("int x = 1'000;"), "int x=1'000;");
  EXPECT_EQ(normalized_cpp("int a;\n  #define A 1\nint b;"), "int a;\n#define A 1\nint b;");
  EXPECT_EQ(normalized_cpp("a # b\nc # d"), "a#b c#d") << "only a line begins with a directive";
}

TEST(unchanged, device_code_is_compared_by_its_kernels) {
  task x = native_task();
  x.terms.contract = contract_kind::device;
  x.starter =
      "#include <cmath>\nnamespace {\n__device__ float one() { return 1; }\n"
      "__global__ void add(const float* x, float* y) { if (x) { y[0] = x[0] + one(); } }\n}\n"
      "extern \"C\" void solve(const float* x, float* y, int n) { add<<<n, dim3(8, 4)>>>(x, y); "
      "}\n";
  std::string own =
      "// launch: add<<<min(n, 64), dim3(8,4)>>>(x, y)\n__device__ float one() { return 1; }\n"
      "extern \"C\" __global__ void add(const float* x, float* y) {\n"
      "  if (x) { y[0] = x[0] + one(); }\n}\n";
  EXPECT_EQ(copied_from(x, "", own), "the starter");
  EXPECT_EQ(copied_from(x, "", "//" + own.substr(3)), "the starter")
      << "a launch line all the same";
  EXPECT_EQ(copied_from(x, "", own + "#define one two\n"), "");
  EXPECT_EQ(copied_from(x, "", "// launch: add<<<1, 1>>>(x, y)\n" + own), "") << "another launch";
  auto wider = own;
  wider.replace(wider.find("8,4"), 3, "8, 8");
  EXPECT_EQ(copied_from(x, "", wider), "") << "other threads";
  EXPECT_EQ(copied_from(x, "", own + "__device__ float two() { return 2; }\n"), "");
  own.replace(own.find("x[0] +"), 6, "x[1] +");
  EXPECT_EQ(copied_from(x, "", own), "");
  EXPECT_EQ(copied_from(x, "", "#include <cmath>\n"), "");
}

TEST(unchanged, baselines_handed_back_as_device_code_are_known_again) {
  const char* root = std::getenv("KERNELMILL_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "KERNELMILL_SOURCE_DIR is not set; run by ctest";
  size_t known = 0;
  std::string others;
  for (const auto& file : std::filesystem::directory_iterator{
           std::string{root} + "/tests/exploits/gpu_corpus/device/honest"}) {
    auto name = file.path().stem().string();
    if (!name.ends_with("_baseline")) continue;
    task x = native_task();
    x.terms.backend = "cuda";
    x.terms.contract = contract_kind::device;
    x.directory = std::string{root} + "/configs/tasks/native/" + name.substr(0, name.size() - 9);
    bool is_copy = copied_from(x, "", read_whole(file.path()).value()) == "the baseline";
    known += is_copy ? 1 : 0;
    if (!is_copy) others += " " + name;
  }
  EXPECT_GE(known, 4u) << "the others say INFINITY in their own words, or have templates:"
                       << others;
}

TEST(unchanged, comments_blank_lines_and_docstrings_of_python_say_nothing) {
  EXPECT_EQ(normalized_python("def f( x ):\n  '''doc'''\n  return (x +\n    1)  # c\n\n"),
            normalized_python("def f(x):\n    return (x+1)\n"));
  EXPECT_NE(normalized_python("if a:\n  b\nc\n"), normalized_python("if a:\n  b\n  c\n"));
  EXPECT_NE(normalized_python("x = '# 1'\n"), normalized_python("x = '# 2'\n"));
}

TEST(unchanged, the_starter_is_known_again) {
  auto x = native_task();
  EXPECT_EQ(copied_from(x, "", x.starter), "the starter");
  EXPECT_EQ(copied_from(x, "",
                        "#include <cmath>\n/* mine */ extern \"C\" void solve(const float *x, "
                        "float *y, int n) { for (int i=0;i<n;++i) y[i]=x[i]+1; }"),
            "the starter");
  EXPECT_EQ(copied_from(x, "",
                        "#include <cmath>\nextern \"C\" void solve(const float* x, float* y, "
                        "int n) { for (int i = 0; i < n; i++) y[i] = x[i] + 1; }"),
            "");
  EXPECT_EQ(copied_from(x, "", ""), "");
}

TEST(unchanged, what_the_prompt_showed_between_fences_is_known_again) {
  auto x = native_task();
  std::string prompt =
      "Look:\n````cpp\nvoid other() {\n```\n}\n````\ntext\n```cpp\nint g();\n```\n";
  EXPECT_EQ(copied_from(x, prompt, "int g ( ) ; // mine"), "an example of the prompt");
  EXPECT_EQ(copied_from(x, prompt, "int h();"), "");
}

TEST(unchanged, the_model_under_its_new_name_is_the_model) {
  auto x = torch_task();
  auto copy = [&](std::string text) { return copied_from(x, "", text); };
  EXPECT_EQ(copy("import torch\nimport torch.nn as nn\nimport math\nclass ModelNew(nn.Module):\n"
                 "  def __init__(self):\n    super(ModelNew, self).__init__()\n"
                 "  def forward(self, x):\n    '''fast'''\n    return torch.softmax(x, dim=1)\n"),
            "the problem's own model");
  EXPECT_EQ(copy(std::string{problem} + "\nModelNew = Model\n"), "the problem's own model");
  EXPECT_EQ(copy(std::string{problem} + "\nclass ModelNew(Model):\n  pass\n"),
            "the problem's own model");
  EXPECT_EQ(copy("import torch\nimport torch.nn as nn\nclass ModelNew(nn.Module):\n"
                 "  def __init__(self):\n    super(ModelNew, self).__init__()\n"
                 "  def forward(self, x):\n    return torch.softmax(x, dim=-1)\n"),
            "");
  EXPECT_EQ(copy(std::string{problem} + "\nclass ModelNew(Model):\n  def forward(self, x):\n"
                                        "    return x.softmax(1)\n"),
            "");
}

TEST(unchanged, the_example_answer_of_a_torch_prompt_is_known_again) {
  auto x = torch_task();
  auto prompt = task_prompt(x, wire::RetrieveResult::Reader{});
  auto from = prompt.find("import", prompt.find("and an answer to it"));
  auto answer = prompt.substr(from, prompt.find("\n```", from) - from);
  ASSERT_THAT(answer, testing::HasSubstr("load_inline"));
  answer.insert(answer.find("__global__"), "// faster\n");
  EXPECT_EQ(copied_from(x, prompt, "# mine\n" + answer), "an example of the prompt");
}

// -- examples that a retriever found --------------------------------------------------------------

constexpr const char* example_reference = R"py(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x).sum(1)
)py";

constexpr const char* example_kernel = R"py(import torch
import triton

@triton.jit
def sums(x, y, BLOCK: tl.constexpr):
    tl.store(y, tl.sum(tl.load(x)))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0])
        sums[(x.shape[0],)](x, y, BLOCK=64)
        return y
)py";

std::string prompt_with(const task& x, const std::string& reference, const std::string& kernel,
                        const char* language) {
  auto found = build<wire::RetrieveResult>([&](wire::RetrieveResult::Builder out) {
    auto example = out.initExamples(1)[0];
    example.setKind("kernel");
    example.setTitle("Row sums");
    example.setReference(reference);
    example.setText(kernel);
    example.setLanguage(language);
  });
  return task_prompt(x, *found.open());
}

TEST(unchanged, a_copied_example_in_python_is_known_again) {
  auto x = torch_task();
  auto prompt = prompt_with(x, example_reference, example_kernel, "python");
  auto copy = [&](const std::string& answer) { return copied_from(x, prompt, answer); };
  EXPECT_EQ(copy(std::string{"# mine\n"} + example_kernel), "an example of the prompt");
  EXPECT_EQ(copy(std::string{example_reference} + example_kernel), "what was shown");
  EXPECT_EQ(copy(std::string{problem} + example_kernel), "what was shown");
  EXPECT_EQ(copy(std::string{example_reference} + "ModelNew = Model\n"), "an example of the prompt")
      << "as the problem's own model, what an example computes is no answer";
}

TEST(unchanged, an_answer_may_use_what_an_example_computes) {
  auto x = torch_task();
  auto prompt = prompt_with(x, example_reference, example_kernel, "python");
  std::string own = "import torch\nimport torch.nn as nn\nclass ModelNew(nn.Module):\n"
                    "    def forward(self, x):\n        return fast(x)\n";
  std::string quoted = "# as of this:\n";
  std::istringstream lines{example_reference};
  for (std::string line; std::getline(lines, line);) quoted += "# " + line + "\n";
  for (const auto& before :
       {std::string{}, quoted, "\"\"\"\n" + std::string{example_reference} + "\"\"\"\n",
        std::string{example_reference}, std::string{problem}})
    EXPECT_EQ(copied_from(x, prompt, before + own), "") << before;
  auto changed = std::string{example_kernel};
  changed.replace(changed.find("BLOCK=64"), 8, "BLOCK=128");
  EXPECT_EQ(copied_from(x, prompt, changed), "");
}

TEST(unchanged, a_copied_example_in_cpp_is_known_again) {
  auto x = native_task();
  std::string kernel = "extern \"C\" void solve(const float* x, float* y, int n) {\n"
                       "  for (int i = 0; i < n; ++i) y[i] = x[i] + 2;\n}\n";
  auto prompt = prompt_with(x, "int f(int);", kernel, "cpp");
  EXPECT_EQ(copied_from(x, prompt, "/* mine */ " + kernel), "an example of the prompt");
  EXPECT_EQ(copied_from(x, prompt, "#include <cmath>\n" + kernel), "");
}

// Many functions, then the one that counts.
std::string long_kernel(bool python) {
  std::string result = python ? "import torch\n" : "#include <cmath>\n";
  for (int i = 0; result.size() < 12'000; ++i)
    result +=
        python ? fmt::format("def step_{}(x):\n    # the next\n    return x + {}\n", i, i)
               : fmt::format("// the next\nstatic int step_{}(int x) {{ return x + {}; }}\n", i, i);
  return result + (python ? "class ModelNew(torch.nn.Module):\n    forward = step_1\n"
                          : "extern \"C\" void solve(int n) { step_1(n); }\n");
}

TEST(unchanged, an_example_whose_end_is_left_out_is_known_again_with_any_end) {
  for (bool python : {false, true}) {
    auto x = python ? torch_task() : native_task();
    auto kernel = long_kernel(python);
    auto prompt = prompt_with(x, "", kernel, python ? "python" : "cpp");
    ASSERT_THAT(prompt, testing::HasSubstr(std::string{cut_note}));
    auto begin = prompt.find(python ? "def step_0" : "// the next\nstatic int step_0");
    auto shown = prompt.substr(begin, prompt.find("\n```\n", begin) + 1 - begin);
    ASSERT_GT(shown.size(), 9'000U);
    shown = kernel.substr(0, kernel.find('\n') + 1) + shown;
    auto copy = [&](const std::string& answer) { return copied_from(x, prompt, answer); };
    EXPECT_EQ(copy(kernel), "an example of the prompt");
    EXPECT_EQ(copy("\n\n" + kernel + "\n"), "an example of the prompt");
    EXPECT_EQ(copy(shown), "an example of the prompt");
    EXPECT_EQ(copy(shown + (python ? "class ModelNew(torch.nn.Module):\n    forward = step_2\n"
                                   : "extern \"C\" void solve(int n) { step_2(n); }\n")),
              "an example of the prompt");
    EXPECT_EQ(copy(kernel.substr(0, 5'000) + "\n" + kernel.substr(11'000)), "");
    EXPECT_EQ(copied_from(x, "no example", kernel), "");
  }
}

TEST(unchanged, the_same_few_lines_may_begin_any_answer) {
  auto x = torch_task();
  std::string found =
      "```python\nimport torch\nimport triton\n```\n" + std::string{cut_note} + "\n";
  EXPECT_EQ(copied_from(x, found, example_kernel), "");
}

TEST(unchanged, device_code_of_an_example_whose_end_is_left_out_is_known_again) {
  auto x = native_task();
  x.terms.contract = contract_kind::device;
  std::string kernel = "// launch: last<<<1, 1>>>(x)\n";
  for (int i = 0; kernel.size() < 12'000; ++i)
    kernel += fmt::format("__device__ int step_{}(int x) {{ return x + {}; }}\n", i, i);
  kernel += "extern \"C\" __global__ void last(int* x) { x[0] = step_1(1); }\n";
  auto prompt = prompt_with(x, "", kernel, "cuda");
  EXPECT_EQ(copied_from(x, prompt, kernel), "an example of the prompt");
  EXPECT_EQ(copied_from(x, prompt, kernel.substr(6'000)), "");
}

} // namespace unchanged_test
} // namespace kernelmill

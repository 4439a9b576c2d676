#include "retrieval/code/reference_code.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace reference_code_test {

std::string signature(std::string_view code) {
  return read_reference(code).signature;
}

/// A problem in KernelBench's form.
std::string problem(const std::string& init, const std::string& forward,
                    const std::string& arguments = {}, const std::string& given = {}) {
  return "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
         "class Model(nn.Module):\n    def __init__(self" +
         (arguments.empty() ? "" : ", " + arguments) +
         "):\n        super(Model, self).__init__()\n" + init + "\n    def forward(self, x):\n" +
         forward + "\n\ndef get_inputs():\n    return [torch.rand(16, 64)]\n\n" +
         "def get_init_inputs():\n    return [" + given + "]\n";
}

TEST(ReferenceCode, OneOperatorHasOneNameHoweverItIsWritten) {
  for (const char* call : {"F.relu(x)", "torch.relu(x)", "x.relu()", "x.relu_()", "nn.ReLU()(x)",
                           "torch.nn.functional.relu(x, inplace=True)", "x.clamp(min=0)",
                           "torch.clamp(x, 0.0)", "x.clamp_min(0)", "F.threshold(x, 0, 0)"})
    EXPECT_EQ(signature(problem("", std::string{"        return "} + call)), "relu") << call;
  for (const char* call : {"x.clamp(min=1)", "torch.clamp(x, 0, 6)", "x.clamp_max(0)"})
    EXPECT_EQ(signature(problem("", std::string{"        return "} + call)), "clamp") << call;
  EXPECT_EQ(signature(problem("        self.act = nn.ReLU(inplace=True)",
                              "        y = self.act(x)\n        return y")),
            "relu");
  EXPECT_EQ(signature("import torch.nn.functional as f\ndef forward(q):\n  return f.relu(q)\n"),
            "relu");
  EXPECT_EQ(
      signature("from torch.nn.functional import relu as r\ndef forward(q):\n  return r(q)\n"),
      "relu");
  for (const char* call : {"x * torch.sigmoid(x)", "torch.sigmoid(x) * x", "F.silu(x)",
                           "nn.SiLU()(x)", "x.sigmoid() * x"})
    EXPECT_EQ(signature(problem("", std::string{"        return "} + call)), "silu") << call;
  EXPECT_EQ(signature(problem("", "        return x * torch.tanh(F.softplus(x))")), "mish");
}

TEST(ReferenceCode, ALayerAndItsFunctionAreOneComputation) {
  auto layer =
      problem("        self.fc = nn.Linear(i, o)", "        return self.fc(x)", "i, o", "64, 32");
  auto weights = problem("        self.w = nn.Parameter(torch.randn(o, i))\n"
                         "        self.b = nn.Parameter(torch.randn(o))",
                         "        return x @ self.w.T + self.b", "i, o", "64, 32");
  EXPECT_EQ(signature(layer), "linear");
  EXPECT_EQ(signature(weights), "linear");
  EXPECT_EQ(signature("import torch.nn.functional as F\n"
                      "def module_fn(x, weight, bias):\n    return F.linear(x, weight, bias)\n"),
            "linear");
  auto convolution = problem("        self.c = nn.Conv2d(i, o, kernel_size=k, stride=2, padding=1)",
                             "        return self.c(x)", "i, o, k", "3, 8, 5");
  EXPECT_EQ(signature(convolution), "conv2d kernel_size=5 stride=2 padding=1");
  // The form of corpora whose functions are given the weights.
  auto function = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
                  "def module_fn(x, w, b, s):\n"
                  "    return F.conv2d(x, w, b, stride=s, padding=1)\n" +
                  problem("        c = nn.Conv2d(i, o, k)\n"
                          "        self.w = nn.Parameter(c.weight)\n"
                          "        self.b = nn.Parameter(c.bias)\n        self.s = 2",
                          "        return self.fn(x)\n"
                          "    def fn(self, x, f=module_fn):\n"
                          "        return f(x, self.w, self.b, self.s)",
                          "i, o, k", "3, 8, 5");
  EXPECT_EQ(signature(function), signature(convolution));
}

TEST(ReferenceCode, WhatChangesTheFunctionCountsAndSizesDoNot) {
  auto with = [](const std::string& layer, const std::string& given) {
    return signature(
        problem("        self.c = " + layer, "        return self.c(x)", "i, o, k", given));
  };
  auto three = with("nn.Conv2d(i, o, k)", "3, 8, 3");
  EXPECT_EQ(three, with("nn.Conv2d(i, o, (k, k), stride=1)", "16, 64, 3"));
  EXPECT_NE(three, with("nn.Conv2d(i, o, k)", "3, 8, 5"));
  EXPECT_NE(three, with("nn.Conv2d(i, o, k, stride=2)", "3, 8, 3"));
  EXPECT_NE(three, with("nn.Conv2d(i, i, k, groups=i)", "8, 8, 3"));
  EXPECT_EQ(with("nn.Conv2d(i, i, k, groups=i)", "8, 8, 3"),
            with("nn.Conv2d(i, i, k, groups=i)", "16, 16, 3"));
  EXPECT_EQ(with("nn.MaxPool2d(k)", "1, 1, 2"), with("nn.MaxPool2d(k, stride=2)", "1, 1, 2"));
  EXPECT_EQ(with("nn.Softmax(dim=1)", "1, 1, 2"), with("nn.Softmax(dim=-1)", "1, 1, 2"))
      << "the input has two dimensions";
  EXPECT_NE(with("nn.Softmax(dim=0)", "1, 1, 2"), with("nn.Softmax(dim=1)", "1, 1, 2"));
}

TEST(ReferenceCode, NamesCommentsAndLayoutDoNotCount) {
  EXPECT_EQ(signature("import torch as t\n"
                      "class Odd(t.nn.Module):\n"
                      "  \"\"\"relu, softmax\"\"\"\n"
                      "  def __init__(self):\n"
                      "    super().__init__()\n"
                      "    self.inner = t.nn.Sequential(t.nn.Linear(4, 4), # gelu\n"
                      "        t.nn.GELU(\n"
                      "        ))\n"
                      "  def forward(self, first):\n"
                      "    second = self.inner(first) ; return second.sum(\n1)\n"),
            "linear; gelu; sum dim=1");
}

TEST(ReferenceCode, LayersInListsLoopsAndBranchesAreFollowed) {
  EXPECT_EQ(signature(problem("        layers = []\n"
                              "        for n in sizes:\n"
                              "            layers.append(nn.Linear(i, n))\n"
                              "            layers += [nn.ReLU()]\n"
                              "            i = n\n"
                              "        self.net = nn.Sequential(*layers)",
                              "        return self.net(x)", "i, sizes", "8, [4, 4]")),
            "linear; relu; linear; relu");
  EXPECT_EQ(signature(problem("        self.blocks = nn.ModuleList([nn.Tanh() for _ in range(n)])\n"
                              "        self.last = nn.Identity() if n > 5 else nn.GELU()",
                              "        for b in self.blocks:\n            x = b(x)\n"
                              "        if self.last is not None:\n            x = self.last(x)\n"
                              "        else:\n            x = x.exp()\n"
                              "        return x",
                              "n", "3")),
            "tanh; tanh; tanh; gelu");
  // How long an input is belongs to its size: the loop is read once.
  EXPECT_EQ(signature(problem("", "        out = []\n        for t in range(x.shape[0]):\n"
                                  "            out.append(x[t].exp())\n"
                                  "        return torch.stack(out)")),
            signature(problem("", "        return torch.stack([x[0].exp()])")));
}

TEST(ReferenceCode, ClassesAndHelpersAreFollowed) {
  EXPECT_EQ(signature("import torch\nfrom torch import nn\n"
                      "def scale(x, by=2.0):\n    return x * by\n"
                      "class Inner(nn.Module):\n"
                      "    def __init__(self, act):\n        super().__init__()\n"
                      "        self.act = act()\n"
                      "    def forward(self, x):\n        return scale(self.act(x))\n"
                      "class Outer(Inner):\n"
                      "    def __init__(self):\n        super().__init__(nn.Tanh)\n"
                      "    def forward(self, x):\n        return super().forward(x).exp()\n"
                      "def get_inputs():\n    return [torch.rand([4, 4])]\n"
                      "def get_init_inputs():\n    return [[], {}]\n"),
            "tanh; mul; exp");
}

TEST(ReferenceCode, WordsNameOperatorsAndShapesAndNoAuthorsNames) {
  auto x = read_reference(problem("        self.frobnicate = nn.Linear(i, o)",
                                  "        return F.gelu(self.frobnicate(x))", "i, o", "64, 32"));
  EXPECT_EQ(x.operators, (std::vector<std::string>{"linear", "gelu"}));
  EXPECT_NE(x.words.find("linear"), x.words.npos);
  EXPECT_NE(x.words.find("16x64"), x.words.npos);
  EXPECT_EQ(x.words.find("frobnicate"), x.words.npos);
  auto plain = read_reference("extern \"C\" void row_sum(const float* x, float* y, int rows)");
  EXPECT_NE(plain.words.find("row_sum"), plain.words.npos);
  EXPECT_TRUE(plain.signature.empty());
}

TEST(ReferenceCode, WhatOnlyACustomKernelComputesHasNoSignature) {
  EXPECT_EQ(signature(problem("", "        return my_kernels.forward(x)")), "");
  EXPECT_EQ(
      signature(problem("        self.k = load_inline(name='k')", "        return self.k.run(x)")),
      "");
}

TEST(ReferenceCode, AnOpenParameterIsLikeAny) {
  EXPECT_TRUE(same_computation("conv2d kernel_size=? stride=2; relu",
                               "conv2d kernel_size=3x5 stride=2; relu"));
  EXPECT_FALSE(same_computation("conv2d kernel_size=? stride=2", "conv2d kernel_size=3 stride=1"));
  EXPECT_FALSE(same_computation("relu", "relu; relu"));
  EXPECT_FALSE(same_computation("", ""));
}

TEST(ReferenceCode, HostileTextGivesSomeAnswer) {
  std::vector<std::string> texts = {
      "",
      "\"\"\"",
      "'",
      "def ",
      "def (",
      "class",
      "class :",
      "lambda",
      "def f(:\n return",
      "\\",
      "def f(x):\n  return f(x)\n",
      "def f(x):\n  return x(x)\ndef g(x): return f(f)\n",
      "class Model(Model):\n  def forward(self, x):\n    return self(x)\n",
      "class A(B):\n pass\nclass B(A):\n def forward(s, x): return super().forward(x)\n",
      "def f(x):\n  while 1:\n    x = [x, x] * 99999\n  for i in range(10**9):\n    x = x + x\n",
      std::string("def f\0(x\xff): return \x80", 21)};
  for (char c : {'(', '[', '{', '-', '*', '@', ',', '.', ':', '=', '"', '\n', '\xff'})
    texts.push_back("def f(x):\n  return " + std::string(20000, c) + "x");
  std::string deep, wide = "def f(x):\n";
  for (int i = 0; i < 5000; ++i) deep += std::string(static_cast<size_t>(i) % 700, ' ') + "if x:\n";
  for (int i = 0; i < 60; ++i)
    wide += std::string(static_cast<size_t>(i), ' ') + " for i in range(9):\n";
  // What would fill the memory if it were followed.
  texts.push_back("def f(x):\n  a = [x] * 64\n" +
                  [] {
                    std::string loops;
                    for (int i = 1; i < 8; ++i)
                      loops +=
                          std::string(static_cast<size_t>(i) * 2, ' ') + "for i in range(64):\n";
                    return loops;
                  }() +
                  std::string(16, ' ') + "a = a + a\n" + std::string(16, ' ') + "a = a[1:2000]\n");
  texts.push_back("def f(x):\n  for i in range(64):\n   for j in range(64):\n    a = '" +
                  std::string(100000, 'y') + "'\n    b = " + std::string(100000, 'z') + "\n");
  texts.push_back("def f(x):\n" + deep);
  texts.push_back(wide + std::string(61, ' ') + "x = x + 1");
  for (const auto& text : texts) {
    auto x = read_reference(text);
    EXPECT_EQ(x.signature, read_reference(text).signature);
  }
}

TEST(ReferenceCode, EveryPrefixOfAProgramGivesSomeAnswer) {
  auto whole = problem("        self.net = nn.Sequential(*[nn.Linear(i, i) for _ in range(3)])",
                       "        y = self.net(x) if x is not None else (lambda a: -a)(x)\n"
                       "        return {'a': y[..., 1:2]}['a'] ** 2",
                       "i", "8");
  for (size_t size = 0; size <= whole.size(); ++size) {
    read_reference(std::string_view{whole}.substr(0, size));
    read_reference(std::string_view{whole}.substr(size));
  }
}

/// The data is not in the tree: KERNELMILL_KERNELBENCH names problems.jsonl.
TEST(ReferenceCode, EveryProblemOfKernelBenchIsRead) {
  const char* path = std::getenv("KERNELMILL_KERNELBENCH");
  if (!path) GTEST_SKIP() << "KERNELMILL_KERNELBENCH names no problems.jsonl";
  std::ifstream file{path};
  ASSERT_TRUE(file) << path;
  size_t problems = 0;
  for (std::string line; std::getline(file, line); ++problems) {
    auto row = nlohmann::json::parse(line);
    auto x = read_reference(row["code"].get<std::string>());
    EXPECT_FALSE(x.signature.empty()) << row["name"];
    EXPECT_FALSE(x.words.empty()) << row["name"];
    EXPECT_LE(std::count(x.signature.begin(), x.signature.end(), '?'), 2) << row["name"];
  }
  EXPECT_EQ(problems, 270U);
}

} // namespace reference_code_test
} // namespace kernelmill

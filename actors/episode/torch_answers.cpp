#include "actors/episode/torch_answers.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view problem = R"py(import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        return self.scale * x * x + shift


def get_inputs():
    return [torch.randn(256, 4096), torch.randn(256, 4096)]


def get_init_inputs():
    return [0.5]
)py";

constexpr std::string_view cuda_answer = R"py(import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void square_shift(const float* x, const float* shift, float* y, float scale, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = scale * x[i] * x[i] + shift[i];
}

torch::Tensor forward(torch::Tensor x, torch::Tensor shift, double scale) {
  auto y = torch::empty_like(x);
  int64_t n = x.numel();
  int block = 256;
  square_shift<<<(n + block - 1) / block, block, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), shift.data_ptr<float>(), y.data_ptr<float>(), float(scale), n);
  return y;
}
"""

cpp_source = "torch::Tensor forward(torch::Tensor x, torch::Tensor shift, double scale);"

extension = load_inline(name="square_shift", cpp_sources=cpp_source, cuda_sources=cuda_source,
                        functions=["forward"])


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        return extension.forward(x.contiguous(), shift.contiguous(), self.scale)
)py";

constexpr std::string_view cpp_answer = R"py(import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>

torch::Tensor forward(torch::Tensor x, torch::Tensor shift, double scale) {
  auto y = torch::empty_like(x);
  const float* a = x.data_ptr<float>();
  const float* b = shift.data_ptr<float>();
  float* out = y.data_ptr<float>();
  float s = float(scale);
  at::parallel_for(0, x.numel(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = s * a[i] * a[i] + b[i];
  });
  return y;
}
"""

extension = load_inline(name="square_shift", cpp_sources=cpp_source, functions=["forward"],
                        extra_cflags=["-O3", "-march=native"])


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        return extension.forward(x.contiguous(), shift.contiguous(), self.scale)
)py";

constexpr std::string_view triton_answer = R"py(import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def square_shift(x_ptr, shift_ptr, y_ptr, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    shift = tl.load(shift_ptr + at, mask=inside)
    tl.store(y_ptr + at, scale * x * x + shift, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        x, shift = x.contiguous(), shift.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        square_shift[(triton.cdiv(n, 1024),)](x, shift, y, self.scale, n, BLOCK=1024)
        return y
)py";

constexpr std::string_view torch_answer = R"py(import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        return torch.addcmul(shift, x, x, value=self.scale)
)py";

// The same problem where all is an input.
constexpr std::string_view problem_of_function = R"py(import torch
import torch.nn as nn


def reference(x, shift, scale):
    return scale * x * x + shift


class Model(nn.Module):
    def forward(self, x, shift, scale):
        return reference(x, shift, scale)


def get_inputs():
    return [torch.randn(256, 4096), torch.randn(256, 4096), 0.5]


def get_init_inputs():
    return []
)py";

void replace_all(std::string& in, std::string_view from, std::string_view to) {
  for (auto at = in.find(from); at != in.npos; at = in.find(from, at + to.size()))
    in.replace(at, from.size(), to);
}

} // namespace

std::string_view example_problem_of_function() {
  return problem_of_function;
}

std::string as_function(std::string_view answer, const torch_entry& entry) {
  constexpr std::string_view head = "    def forward(self, x, shift):\n";
  auto begin = answer.find("class ModelNew");
  auto body = answer.find(head) + head.size();
  std::string result{answer.substr(0, begin)};
  replace_all(result, "import torch.nn as nn\n", "");
  result += "def " + entry.function + (entry.as_tuple ? "(inputs):\n" : "(x, shift, scale):\n");
  if (entry.as_tuple) result += "    x, shift, scale = inputs\n";
  std::string lines = "\n" + std::string{answer.substr(body)};
  replace_all(lines, "\n        ", "\n    ");
  replace_all(lines, "self.scale", "scale");
  return result + lines.substr(1);
}

std::string_view example_problem() {
  return problem;
}

std::string_view example_answer(std::string_view language, std::string_view backend) {
  if (language == "triton") return triton_answer;
  if (language == "torch") return torch_answer;
  // HIP's own compiler driver of torch translates CUDA's words.
  return backend == "cpu" ? cpp_answer : cuda_answer;
}

} // namespace kernelmill

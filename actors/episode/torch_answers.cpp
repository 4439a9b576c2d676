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

constexpr std::string_view gluon_answer = R"py(import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def square_shift(x_ptr, shift_ptr, y_ptr, scale, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    inside = at < n
    x = gl.load(x_ptr + at, mask=inside)
    shift = gl.load(shift_ptr + at, mask=inside)
    gl.store(y_ptr + at, scale * x * x + shift, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        x, shift = x.contiguous(), shift.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        square_shift[(triton.cdiv(n, 1024),)](x, shift, y, self.scale, n, BLOCK=1024, num_warps=4)
        return y
)py";

constexpr std::string_view cute_dsl_answer = R"py(import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def square_shift(x: cute.Tensor, shift: cute.Tensor, y: cute.Tensor, scale: cutlass.Float32, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 256 + thread
    if at < n:
        y[at] = scale * x[at] * x[at] + shift[at]


@cute.jit
def launch(
    x: cute.Tensor,
    shift: cute.Tensor,
    y: cute.Tensor,
    scale: cutlass.Float32,
    n: cutlass.Int32,
    stream: cuda.CUstream,
):
    square_shift(x, shift, y, scale, n).launch(grid=[(n + 255) // 256, 1, 1], block=[256, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.compiled = None

    def forward(self, x, shift):
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        flat = [from_dlpack(t.contiguous().view(-1)) for t in (x, shift, y)]
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        given = (*flat, self.scale, x.numel(), stream)
        if self.compiled is None:
            self.compiled = cute.compile(launch, *given)
        self.compiled(*given)
        return y
)py";

constexpr std::string_view cutile_answer = R"py(import cuda.tile as ct
import torch
import torch.nn as nn


@ct.kernel
def square_shift(x, shift, y, scale: ct.Constant[float], TILE: ct.Constant[int]):
    at = ct.bid(0)
    a = ct.load(x, index=(at,), shape=(TILE,))
    b = ct.load(shift, index=(at,), shape=(TILE,))
    ct.store(y, index=(at,), tile=scale * a * a + b)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        x, shift = x.contiguous(), shift.contiguous()
        y = torch.empty_like(x)
        tile = 1024
        grid = (ct.cdiv(x.numel(), tile), 1, 1)
        stream = torch.cuda.current_stream().cuda_stream
        given = (x.view(-1), shift.view(-1), y.view(-1), self.scale, tile)
        ct.launch(stream, grid, square_shift, given)
        return y
)py";

constexpr std::string_view tilelang_answer = R"py(import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[2])
def square_shift(n, scale, block=1024, threads=256):
    @T.prim_func
    def scaled(
        x: T.Tensor((n,), "float32"),
        shift: T.Tensor((n,), "float32"),
        y: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, block), threads=threads) as at:
            for i in T.Parallel(block):
                y[at * block + i] = scale * x[at * block + i] * x[at * block + i] + shift[at * block + i]

    return scaled


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        kernel = square_shift(x.numel(), self.scale)
        return kernel(x.contiguous().view(-1), shift.contiguous().view(-1)).view(x.shape)
)py";

constexpr std::string_view helion_answer = R"py(import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[1024], num_warps=4))
def square_shift(x: torch.Tensor, shift: torch.Tensor, scale: float) -> torch.Tensor:
    y = torch.empty_like(x)
    for at in hl.tile(x.size(0)):
        y[at] = scale * x[at] * x[at] + shift[at]
    return y


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, shift):
        y = square_shift(x.contiguous().view(-1), shift.contiguous().view(-1), self.scale)
        return y.view(x.shape)
)py";

// Each language's own line of the prompt, and an answer in it.
struct kernel_language {
  std::string_view name, words, answer;
};

constexpr kernel_language kernel_languages[] = {
    {"gluon",
     "- The work must be done by kernels of yours in Gluon (@gluon.jit of triton.experimental): "
     "tensors have layouts that you choose. A forward that only calls operators of PyTorch is "
     "refused, and so are kernels of plain Triton.\n",
     gluon_answer},
    {"cute_dsl",
     "- The work must be done by kernels of yours in CuTe DSL (@cute.kernel of cutlass.cute), "
     "compiled once with cute.compile and launched on the current stream. A forward that only "
     "calls operators of PyTorch is refused.\n",
     cute_dsl_answer},
    {"cutile",
     "- The work must be done by kernels of yours in cuTile (@ct.kernel of cuda.tile), launched "
     "with ct.launch on the current stream. A forward that only calls operators of PyTorch is "
     "refused.\n",
     cutile_answer},
    {"tilelang",
     "- The work must be done by kernels of yours in TileLang (@T.prim_func behind @tilelang.jit). "
     "A forward that only calls operators of PyTorch is refused.\n",
     tilelang_answer},
    {"helion",
     "- The work must be done by kernels of yours in Helion (@helion.kernel). Give each a config: "
     "searching for one takes longer than a call may. A forward that only calls operators of "
     "PyTorch is refused.\n",
     helion_answer}};

const kernel_language* find_language(std::string_view name) {
  for (const auto& x : kernel_languages)
    if (x.name == name) return &x;
  return nullptr;
}

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

std::string_view words_of_language(std::string_view language) {
  const auto* found = find_language(language);
  return found != nullptr ? found->words : std::string_view{};
}

bool builds_extensions(std::string_view language) {
  return language == "any" || language == "cuda";
}

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
  if (const auto* found = find_language(language)) return found->answer;
  if (language == "triton") return triton_answer;
  if (language == "torch") return torch_answer;
  // HIP's own compiler driver of torch translates CUDA's words.
  return backend == "cpu" ? cpp_answer : cuda_answer;
}

} // namespace kernelmill

"""What compiling an inline CUDA extension costs: torch's own command, and ours.

    PYTHON_WITH_TORCH tests/bench/torch_build_bench.py [ARCHITECTURE] [CANDIDATE ...]

Prints, for each candidate, processor seconds (and wall seconds) of the CUDA source with torch's own
headers and with the slim ones of kernelmill_torch/slim, and once those of the host source. No GPU is
needed. The sources are our own; nothing is run.
"""

import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLIM = os.path.join(ROOT, "gpu/torch/kernelmill_torch/slim")

CANDIDATES = {
    "relu": r"""
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.f ? x[i] : 0.f;
}
torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be on the GPU");
  auto y = torch::empty_like(x);
  int64_t n = x.numel();
  relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
""",
    "softmax, c10 stream": r"""
#include <ATen/cuda/CUDAContext.h>
__global__ void softmax_kernel(const float* x, float* y, int cols) {
  __shared__ float part[256];
  x += (int64_t)blockIdx.x * cols; y += (int64_t)blockIdx.x * cols;
  float m = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += 256) m = fmaxf(m, x[c]);
  part[threadIdx.x] = m; __syncthreads();
  for (int n = 128; n > 0; n /= 2) { if (threadIdx.x < n) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + n]); __syncthreads(); }
  m = part[0]; __syncthreads();
  float s = 0;
  for (int c = threadIdx.x; c < cols; c += 256) s += __expf(x[c] - m);
  part[threadIdx.x] = s; __syncthreads();
  for (int n = 128; n > 0; n /= 2) { if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n]; __syncthreads(); }
  for (int c = threadIdx.x; c < cols; c += 256) y[c] = __expf(x[c] - m) / part[0];
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  softmax_kernel<<<x.size(0), 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
""",  # noqa: E501
    "matmul, shared memory": r"""
#define TILE 32
__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < k; t += TILE) {
    as[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0;
    bs[threadIdx.y][threadIdx.x] = col < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + col] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
torch::Tensor run(torch::Tensor a) {
  auto b = a.contiguous();
  int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::zeros({m, n}, torch::TensorOptions().dtype(torch::kFloat32).device(a.device()));
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), block(TILE, TILE);
  matmul_kernel<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
  return c;
}
""",
    "layernorm, AT_DISPATCH": r"""
template <typename scalar_t>
__global__ void norm_kernel(const scalar_t* x, scalar_t* y, int cols, float eps) {
  __shared__ float part[256];
  x += (int64_t)blockIdx.x * cols; y += (int64_t)blockIdx.x * cols;
  float s = 0, q = 0;
  for (int c = threadIdx.x; c < cols; c += 256) { float v = x[c]; s += v; q += v * v; }
  part[threadIdx.x] = s; __syncthreads();
  for (int n = 128; n > 0; n /= 2) { if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n]; __syncthreads(); }
  float mean = part[0] / cols; __syncthreads();
  part[threadIdx.x] = q; __syncthreads();
  for (int n = 128; n > 0; n /= 2) { if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n]; __syncthreads(); }
  float scale = rsqrtf(part[0] / cols - mean * mean + eps);
  for (int c = threadIdx.x; c < cols; c += 256) y[c] = (static_cast<float>(x[c]) - mean) * scale;
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "norm", [&] {
    norm_kernel<scalar_t><<<x.size(0), 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(1), 1e-5f);
  });
  return y;
}
""",
    "add, packed accessors": r"""
template <typename scalar_t>
__global__ void add_kernel(torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x,
                           torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> y) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  if (c < x.size(1)) y[r][c] = x[r][c] + x[r][c];
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "add", ([&] {
    add_kernel<scalar_t><<<dim3((x.size(1) + 255) / 256, x.size(0)), 256>>>(
        x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
        y.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>());
  }));
  return y;
}
""",
}

HOST = """#include <torch/extension.h>
torch::Tensor run(torch::Tensor x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
m.def("run", torch::wrap_pybind_function(run), "run");
}
"""


def measure(command):
    """Processor and wall seconds of a command, which must succeed."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begin
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode != 0:
        return "failed: " + done.stdout.strip().splitlines()[0][:100]
    return f"{cpu:6.1f} ({wall:.1f})"


def macros(text):
    """As slim_macros() in gpu/toolchain/torch_sources.cpp."""
    result = []
    if "AT_DISPATCH" in text:
        result.append("-DKERNELMILL_WANTS_DISPATCH")
    if any(x in text for x in ("CUDAStream", "cuda::", "CUDAGuard", "C10_CUDA", "AT_CUDA")):
        result.append("-DKERNELMILL_WANTS_CUDA")
    return result


def main():
    from torch.utils import cpp_extension

    architecture = sys.argv[1] if len(sys.argv) > 1 else "sm_90"
    number = architecture.split("_")[1]
    toolkit = cpp_extension.CUDA_HOME
    includes = cpp_extension.include_paths() + [os.path.join(toolkit, "include"), sysconfig.get_path("include")]
    flags = [y for x in includes for y in ("-isystem", x)]
    flags += ["-DTORCH_EXTENSION_NAME=x", "-DTORCH_API_INCLUDE_EXTENSION_H", "-std=c++17"]
    nvcc = [
        os.path.join(toolkit, "bin/nvcc"),
        *cpp_extension.COMMON_NVCC_FLAGS,
        "--compiler-options",
        "-fPIC",
        f"-gencode=arch=compute_{number},code=sm_{number}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        print("| CUDA source | torch's headers | slim headers |\n|---|---|---|", flush=True)
        for name, text in CANDIDATES.items():
            if sys.argv[2:] and not any(x in name for x in sys.argv[2:]):
                continue
            with open(path("k.cu"), "w") as file:
                file.write("#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n" + text)
            end = ["-c", path("k.cu"), "-o", path("k.o")]
            slim = measure([*nvcc, "-isystem", SLIM, *flags, *macros(text), *end])
            print(f"| {name} | {measure([*nvcc, *flags, *end])} | {slim} |", flush=True)
        with open(path("main.cpp"), "w") as file:
            file.write(HOST)
        end = ["-fPIC", "-c", path("main.cpp"), "-o", path("main.o")]
        print("\n| host source | seconds |\n|---|---|")
        for level in ("-O0", "-O2"):
            print(f"| {level}, torch's headers | {measure(['g++', level, *flags, *end])} |", flush=True)
            command = ["g++", level, "-isystem", SLIM, *flags, "-fPIC"]
            print(f"| {level}, slim headers | {measure([*command, *end])} |", flush=True)
            with open(path("p.hpp"), "w") as file:
                file.write("#include <torch/extension.h>\n")
            made = measure([*command, "-x", "c++-header", path("p.hpp"), "-o", path("p.hpp.gch")])
            size = os.path.getsize(path("p.hpp.gch")) >> 20
            print(f"| {level}, precompiling those ({size} MiB) | {made} |", flush=True)
            print(
                f"| {level}, slim headers, precompiled | {measure([*command, '-include', path('p.hpp'), *end])} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

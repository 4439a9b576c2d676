#include "gpu/toolchain/control_source.hpp"

#include <algorithm>
#include <array>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

// Of C, C++17 and what a compiler of this program must have of C++20; of GCC and OpenMP.
constexpr std::array host_headers =
    std::to_array<std::string_view>({"algorithm",     "any",           "array",
                                     "atomic",        "bit",           "bitset",
                                     "cassert",       "cctype",        "cerrno",
                                     "cfenv",         "cfloat",        "charconv",
                                     "chrono",        "cinttypes",     "climits",
                                     "clocale",       "cmath",         "complex",
                                     "concepts",      "csignal",       "cstdarg",
                                     "cstddef",       "cstdint",       "cstdio",
                                     "cstdlib",       "cstring",       "ctime",
                                     "deque",         "exception",     "fstream",
                                     "functional",    "future",        "initializer_list",
                                     "iomanip",       "ios",           "iostream",
                                     "istream",       "iterator",      "limits",
                                     "list",          "map",           "memory",
                                     "mutex",         "new",           "numbers",
                                     "numeric",       "optional",      "ostream",
                                     "queue",         "random",        "ranges",
                                     "ratio",         "regex",         "set",
                                     "shared_mutex",  "span",          "sstream",
                                     "stack",         "stdexcept",     "string",
                                     "string_view",   "system_error",  "thread",
                                     "tuple",         "type_traits",   "typeinfo",
                                     "unordered_map", "unordered_set", "utility",
                                     "valarray",      "variant",       "vector",
                                     "assert.h",      "errno.h",       "float.h",
                                     "immintrin.h",   "inttypes.h",    "limits.h",
                                     "math.h",        "omp.h",         "signal.h",
                                     "stdarg.h",      "stdbool.h",     "stddef.h",
                                     "stdint.h",      "stdio.h",       "stdlib.h",
                                     "string.h",      "time.h",        "unistd.h",
                                     "x86intrin.h"});

constexpr std::array cuda_headers = std::to_array<std::string_view>(
    {"cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h"});

// These NVRTC has, too.
constexpr std::array device_headers = std::to_array<std::string_view>(
    {"cooperative_groups.h", "cuda_bf16.h", "cuda_fp16.h", "mma.h"});

constexpr std::array hip_headers = std::to_array<std::string_view>({"hip/hip_runtime.h"});

template <class List>
bool has(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool belongs_to(control_kind kind, std::string_view name) {
  switch (kind) {
    case control_kind::host: return has(host_headers, name);
    case control_kind::cuda:
      return has(host_headers, name) || has(cuda_headers, name) || has(device_headers, name);
    case control_kind::hip: return has(host_headers, name) || has(hip_headers, name);
    case control_kind::device: return has(device_headers, name);
  }
  return false;
}

// "vector" of "  #  include <vector> // ..."; empty for other lines.
std::string_view included(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.front() != '#') return {};
  line = trimmed(line.substr(1));
  if (!line.starts_with("include")) return {};
  line = trimmed(line.substr(7));
  if (line.empty() || (line.front() != '<' && line.front() != '"')) return {};
  auto end = line.find(line.front() == '<' ? '>' : '"', 1);
  return end == line.npos ? std::string_view{} : line.substr(1, end - 1);
}

constexpr std::string_view host_body = R"(
extern "C" void kernelmill_control(const float* x, float* y, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) y[i] = 2 * x[i];
}
)";

constexpr std::string_view device_body = R"(
extern "C" __global__ void kernelmill_control_kernel(const float* x, float* y) {
  y[threadIdx.x] = 2 * x[threadIdx.x];
}
)";

constexpr std::string_view launch_body = R"(
extern "C" void kernelmill_control(const float* x, float* y) {
  kernelmill_control_kernel<<<1, 32>>>(x, y);
}
)";

} // namespace

std::string control_source(control_kind kind, std::string_view source) {
  std::string result;
  while (!source.empty())
    if (auto name = included(next_line(source)); belongs_to(kind, name))
      result.append("#include <").append(name).append(">\n");
  if (kind == control_kind::host) return result.append(host_body);
  result.append(device_body);
  return kind == control_kind::device ? result : result.append(launch_body);
}

bool is_toolchain_header(std::string_view name) {
  for (std::string_view folder : {"bits/", "sys/", "linux/", "asm/", "ext/", "crt/", "nv/", "hip/",
                                  "torch/", "ATen/", "c10/", "pybind11/", "/usr/"})
    if (name.starts_with(folder)) return true;
  return name == "Python.h" || has(host_headers, name) || has(cuda_headers, name) ||
         has(device_headers, name);
}

std::string package_of(std::string_view line) {
  struct row {
    std::string_view word;
    std::string_view packages;
  };
  static constexpr row rows[] = {
      {"pybind11/", "libtorch-dev of Debian, or pybind11-dev; else a torch from PyPI"},
      {"torch/", "libtorch-dev, beside Debian's python3-torch; else a torch from PyPI"},
      {"ATen/", "libtorch-dev, beside Debian's python3-torch; else a torch from PyPI"},
      {"c10/", "libtorch-dev, beside Debian's python3-torch; else a torch from PyPI"},
      {"-ltorch", "libtorch-dev, beside Debian's python3-torch; else a torch from PyPI"},
      {"-lc10", "libtorch-dev, beside Debian's python3-torch; else a torch from PyPI"},
      {"Python.h", "python3-dev, or what has the headers of that interpreter"},
      {"pyconfig.h", "python3-dev, or what has the headers of that interpreter"},
      {"hip/", "libamdhip64-dev and hipcc, or ROCm"},
      {"cuda", "the CUDA toolkit (cuda-cudart-dev and cuda-nvcc of NVIDIA's packages)"},
      {"cudart", "the CUDA toolkit (cuda-cudart-dev and cuda-nvcc of NVIDIA's packages)"},
      {"crt/", "the CUDA toolkit (cuda-crt of NVIDIA's packages)"},
      {"cooperative_groups", "the CUDA toolkit (cuda-cudart-dev of NVIDIA's packages)"},
      {"mma.h", "the CUDA toolkit (cuda-cudart-dev of NVIDIA's packages)"},
      {"nv/target", "the CUDA toolkit (cuda-cccl of NVIDIA's packages)"},
      {"gomp", "libgomp1 and g++"},
      {"omp.h", "g++ (libgcc-12-dev of Debian 12)"},
      {"cc1plus", "g++"},
      {"ld: cannot find", "g++ and libc6-dev"},
      {"x86intrin.h", "g++ (libgcc-12-dev of Debian 12)"},
      {"immintrin.h", "g++ (libgcc-12-dev of Debian 12)"},
  };
  bool missing = false;
  for (std::string_view words : {"No such file or directory", "file not found", "open source file",
                                 "cannot find", "error while loading shared libraries",
                                 "cannot open shared object file", "command not found"})
    missing = missing || line.find(words) != line.npos;
  if (!missing) return {};
  for (const auto& x : rows)
    if (line.find(x.word) != line.npos) return std::string{x.packages};
  return "g++ with libstdc++ and libc6-dev (apt install g++), or the compiler's own package";
}

} // namespace kernelmill

// The plain way to time a kernel, for comparison: load the library, make buffers, warm up, and
// take the median of CUDA events around single calls, with the cache flushed before each.
//   event_timer LIBRARY CALLS ARGUMENT...    f32:COUNT, i32:COUNT:BELOW or a scalar's value
// Prints milliseconds: the median of single calls, the mean over a row of 20 calls, and the host's
// clock over 64 calls back to back until the GPU is done, divided by their number.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <dlfcn.h>

__global__ void fill_f32(float* x, size_t n, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    unsigned h = unsigned(i) * 0x9e3779b1u ^ seed;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    x[i] = float(h >> 8) * 0x1p-23f - 1.0f;
  }
}

__global__ void fill_i32(int* x, size_t n, unsigned below, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    unsigned h = unsigned(i) * 0x9e3779b1u ^ seed;
    x[i] = int((h ^ (h >> 15)) * 0x846ca68bu % below);
  }
}

using any_function = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                              int64_t, int64_t, int64_t, int64_t, int64_t);

int main(int argc, char** argv) {
  constexpr int sets = 5; // of buffers, so that a row finds nothing in the cache
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  auto solve = reinterpret_cast<any_function>(dlsym(library, "solve"));
  int calls = std::atoi(argv[2]);
  int64_t a[sets][12] = {};
  for (int s = 0; s < sets; ++s)
    for (int i = 3; i < argc && i < 15; ++i) {
      size_t count = std::strtoull(argv[i] + 4, nullptr, 10);
      if (std::strncmp(argv[i], "f32:", 4) == 0) {
        float* x = nullptr;
        if (cudaMalloc(&x, count * 4) != cudaSuccess) return std::fprintf(stderr, "memory\n"), 1;
        fill_f32<<<2048, 256>>>(x, count, s * 100 + i);
        a[s][i - 3] = reinterpret_cast<int64_t>(x);
      } else if (std::strncmp(argv[i], "i32:", 4) == 0) {
        int* x = nullptr;
        if (cudaMalloc(&x, count * 4) != cudaSuccess) return std::fprintf(stderr, "memory\n"), 1;
        unsigned below = std::strtoul(std::strrchr(argv[i], ':') + 1, nullptr, 10);
        fill_i32<<<2048, 256>>>(x, count, below, s * 100 + i);
        a[s][i - 3] = reinterpret_cast<int64_t>(x);
      } else {
        a[s][i - 3] = std::atoll(argv[i]);
      }
    }
  auto call = [&](int s) {
    auto* v = a[s];
    solve(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]);
  };
  void* flushed = nullptr;
  cudaMalloc(&flushed, 256 << 20);
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  for (int i = 0; i < 5; ++i) call(i % sets);
  std::vector<float> times;
  for (int i = 0; i < calls; ++i) {
    cudaMemsetAsync(flushed, i, 256 << 20);
    cudaEventRecord(from);
    call(i % sets);
    cudaEventRecord(to);
    cudaEventSynchronize(to);
    times.emplace_back();
    cudaEventElapsedTime(&times.back(), from, to);
  }
  std::sort(times.begin(), times.end());
  std::vector<float> rows;
  for (int r = 0; r < 9; ++r) {
    cudaEventRecord(from);
    for (int i = 0; i < 20; ++i) call(i % sets);
    cudaEventRecord(to);
    cudaEventSynchronize(to);
    rows.emplace_back();
    cudaEventElapsedTime(&rows.back(), from, to);
  }
  std::sort(rows.begin(), rows.end());
  std::vector<double> walls;
  for (int r = 0; r < 9; ++r) {
    cudaMemset(flushed, r, 256 << 20);
    cudaDeviceSynchronize();
    auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 64; ++i) call(i % sets);
    cudaDeviceSynchronize();
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    walls.push_back(took.count() / 64);
  }
  std::sort(walls.begin(), walls.end());
  if (auto code = cudaDeviceSynchronize(); code != cudaSuccess)
    return std::fprintf(stderr, "%s\n", cudaGetErrorString(code)), 1;
  std::printf("%.6f %.6f %.6f\n", times[times.size() / 2], rows[4] / 20, walls[4]);
}

#include <cstdio>
#include <cstring>
#include <vector>

#include <nvtx3/nvToolsExt.h>

#include "window_sum.h"

namespace {

bool failed(cudaError_t status) {
  if (status == cudaSuccess) return false;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  return true;
}

struct buffers {
  int* values = nullptr;
  long long* sums = nullptr;
  ~buffers() {
    cudaFree(values);
    cudaFree(sums);
  }
};

// Fresh contents each time; the windows are checked on the host.
bool check(int count, int width, unsigned seed, bool timed) {
  std::vector<int> values(count);
  for (auto& x : values) x = static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 16) - 32768;
  size_t windows = static_cast<size_t>(count - width + 1);
  buffers on_gpu;
  if (failed(cudaMalloc(&on_gpu.values, values.size() * sizeof(int))) ||
      failed(cudaMalloc(&on_gpu.sums, windows * sizeof(long long))) ||
      failed(cudaMemset(on_gpu.sums, 0x7f, windows * sizeof(long long))) ||
      failed(cudaMemcpy(on_gpu.values, values.data(), values.size() * sizeof(int),
                        cudaMemcpyHostToDevice)))
    return false;
  if (timed) nvtxRangePushA("timed");
  window_sums(on_gpu.values, on_gpu.sums, count, width);
  bool bad = failed(cudaDeviceSynchronize());
  if (timed) nvtxRangePop();
  std::vector<long long> sums(windows);
  if (bad || failed(cudaMemcpy(sums.data(), on_gpu.sums, windows * sizeof(long long),
                               cudaMemcpyDeviceToHost)))
    return false;
  long long want = 0;
  for (int i = 0; i < width; ++i) want += values[i];
  for (size_t i = 0; i < windows; ++i) {
    if (i > 0) want += values[i + width - 1] - values[i - 1];
    if (sums[i] == want) continue;
    std::fprintf(stderr, "count %d, width %d: window %zu is %lld, not %lld\n", count, width, i,
                 sums[i], want);
    return false;
  }
  return true;
}

} // namespace

int main(int argc, char** argv) {
  const int sizes[][2] = {{1, 1}, {7, 7}, {1000, 3}, {4097, 4096}, {100000, 33}, {65536, 1024}};
  for (auto [count, width] : sizes)
    if (!check(count, width, static_cast<unsigned>(count), false)) return 1;
  if (argc > 1 && std::strcmp(argv[1], "--perf") == 0)
    for (unsigned seed = 1; seed <= 20; ++seed)
      if (!check(1 << 22, 2048, seed, true)) return 1;
  return 0;
}

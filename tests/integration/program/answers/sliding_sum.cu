#include "window_sum.h"

// Each thread sums one window and slides it on over its neighbours.
static constexpr int run = 32;

static __global__ void slide(const int* values, long long* sums, int windows, int width) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * run;
  if (first >= windows) return;
  long long sum = 0;
  for (int k = 0; k < width; ++k) sum += values[first + k];
  sums[first] = sum;
  int last = min(first + run, windows);
  for (int i = first + 1; i < last; ++i) {
    sum += values[i + width - 1] - values[i - 1];
    sums[i] = sum;
  }
}

void window_sums(const int* values, long long* sums, int count, int width) {
  int windows = count - width + 1;
  int threads = (windows + run - 1) / run;
  slide<<<(threads + 255) / 256, 256>>>(values, sums, windows, width);
}

#include "window_sum.h"

static __global__ void each_window(const int* values, long long* sums, int windows, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= windows) return;
  long long sum = 0;
  for (int k = 0; k < width; ++k) sum += values[i + k];
  sums[i] = sum;
}

void window_sums(const int* values, long long* sums, int count, int width) {
  int windows = count - width + 1;
  each_window<<<(windows + 255) / 256, 256>>>(values, sums, windows, width);
}

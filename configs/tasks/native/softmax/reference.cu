// The total over the block, in every thread. The first barrier also guards a repeated use.
__device__ double block_sum(double value) {
  __shared__ double partial[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < warps ? partial[lane] : 0;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// As block_sum, for the maximum.
__device__ double block_max(double value) {
  __shared__ double partial[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int step = 16; step > 0; step /= 2)
    value = fmax(value, __shfl_xor_sync(~0u, value, step));
  __syncthreads();
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < warps ? partial[lane] : -INFINITY;
  for (int step = 16; step > 0; step /= 2)
    value = fmax(value, __shfl_xor_sync(~0u, value, step));
  return value;
}

// The scale is explained in reference.cpp. One block a row; the sum's order differs from the
// host's, which in double is far below every bound. A thread reads back only what it wrote itself.
__global__ void softmax_rows(const float* x, double* y, double* y_scale, int cols) {
  const long first = long(blockIdx.x) * cols;
  double top = -INFINITY;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) top = fmax(top, double(x[first + j]));
  top = block_max(top);
  double sum = 0;
  for (int j = threadIdx.x; j < cols; j += blockDim.x)
    sum += y[first + j] = exp(double(x[first + j]) - top);
  sum = block_sum(sum);
  const double common = 8 + sqrt(double(cols)) + fabs(top);
  for (int j = threadIdx.x; j < cols; j += blockDim.x) {
    const double value = y[first + j] / sum;
    y[first + j] = value;
    y_scale[first + j] = value > 0 ? value * (common + fabs(double(x[first + j]))) : 0;
  }
}

extern "C" void reference(const float* x, double* y, double* y_scale, int rows, int cols) {
  softmax_rows<<<rows, 256>>>(x, y, y_scale, cols);
}

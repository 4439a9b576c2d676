// As reference.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
// The total over the block, in every thread. The first barrier also guards a repeated use.
__device__ double block_sum(double value) {
  __shared__ double partial[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor(value, step, 32);
  __syncthreads();
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < warps ? partial[lane] : 0;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor(value, step, 32);
  return value;
}

// As block_sum, for the maximum.
__device__ double block_max(double value) {
  __shared__ double partial[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int step = 16; step > 0; step /= 2)
    value = fmax(value, __shfl_xor(value, step, 32));
  __syncthreads();
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < warps ? partial[lane] : -INFINITY;
  for (int step = 16; step > 0; step /= 2)
    value = fmax(value, __shfl_xor(value, step, 32));
  return value;
}

// The scale is explained in reference.cpp. One block a row; the sum's order differs from the
// host's, which in double is far below every bound. The exponentials are formed twice, which takes
// less time than to store them and read them back.
__global__ void softmax_rows(const float* __restrict__ x, double* __restrict__ y,
                             double* __restrict__ y_scale, int cols) {
  const long first = long(blockIdx.x) * cols;
  float most = -INFINITY;
#pragma unroll 4
  for (int j = threadIdx.x; j < cols; j += blockDim.x) most = fmaxf(most, x[first + j]);
  const double top = block_max(most);
  double sum = 0;
#pragma unroll 4
  for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += exp(double(x[first + j]) - top);
  const double inverse = 1 / block_sum(sum);
  const double common = 8 + sqrt(double(cols)) + fabs(top);
#pragma unroll 4
  for (int j = threadIdx.x; j < cols; j += blockDim.x) {
    const double from = x[first + j], value = exp(from - top) * inverse;
    y[first + j] = value;
    y_scale[first + j] = value > 0 ? value * (common + fabs(from)) : 0;
  }
}

extern "C" void reference(const float* x, double* y, double* y_scale, int rows, int cols) {
  softmax_rows<<<rows, 1024>>>(x, y, y_scale, cols);
}

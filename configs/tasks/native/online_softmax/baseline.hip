// As baseline.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
// The total over the block, in every thread. The first barrier also guards a repeated use.
__device__ float block_sum(float value) {
  __shared__ float partial[32];
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
__device__ float block_max(float value) {
  __shared__ float partial[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor(value, step, 32));
  __syncthreads();
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < warps ? partial[lane] : -INFINITY;
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor(value, step, 32));
  return value;
}

// One large block a row, since rows are few and long: maximum, sum, result.
__global__ void softmax_rows(const float* x, float* y, int cols) {
  const float* in = x + long(blockIdx.x) * cols;
  float* out = y + long(blockIdx.x) * cols;
  float top = -INFINITY;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) top = fmaxf(top, in[j]);
  top = block_max(top);
  float sum = 0;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += expf(in[j] - top);
  sum = block_sum(sum);
  for (int j = threadIdx.x; j < cols; j += blockDim.x) out[j] = expf(in[j] - top) / sum;
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  softmax_rows<<<rows, 1024>>>(x, y, cols);
}

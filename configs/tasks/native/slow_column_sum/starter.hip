// As starter.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
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

// One block a column.
__global__ void sum_columns(const float* x, float* y, int rows, int cols) {
  const float* column = x + blockIdx.x;
  float sum = 0;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) sum += column[long(i) * cols];
  sum = block_sum(sum);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  sum_columns<<<cols, 256>>>(x, y, rows, cols);
}

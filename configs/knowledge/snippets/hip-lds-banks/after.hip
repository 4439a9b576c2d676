__global__ void transpose_tile(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[64][65]; // 65: a column lies in 32 different banks
  int c0 = blockIdx.x * 64, r0 = blockIdx.y * 64, i = threadIdx.x; // 64 by 4 threads
  for (int r = threadIdx.y; r < 64; r += 4) tile[r][i] = x[(size_t)(r0 + r) * cols + c0 + i];
  __syncthreads();
  for (int c = threadIdx.y; c < 64; c += 4) y[(size_t)(c0 + c) * rows + r0 + i] = tile[i][c];
}

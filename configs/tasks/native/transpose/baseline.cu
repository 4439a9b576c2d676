constexpr int kTile = 32;
constexpr int kWarps = 8;

// A tile passes through shared memory, so that reads and writes both run along rows.
__global__ void transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[kTile][kTile + 1];  // one more, so that a column spreads over the banks
  // A one-dimensional grid, since the other dimensions of a grid end at 65535.
  const long across = (long(cols) + kTile - 1) / kTile;
  const long top = long(blockIdx.x) / across * kTile;
  const long left = long(blockIdx.x) % across * kTile;
  const int lane = threadIdx.x;
  for (int r = threadIdx.y; r < kTile; r += kWarps)
    if (top + r < rows && left + lane < cols) tile[r][lane] = x[(top + r) * cols + left + lane];
  __syncthreads();
  for (int r = threadIdx.y; r < kTile; r += kWarps)
    if (left + r < cols && top + lane < rows) y[(left + r) * rows + top + lane] = tile[lane][r];
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  const long blocks = (long(rows) + kTile - 1) / kTile * ((long(cols) + kTile - 1) / kTile);
  transpose<<<unsigned(blocks), dim3(kTile, kWarps)>>>(x, y, rows, cols);
}

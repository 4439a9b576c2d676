constexpr int kTile = 64;   // a block makes 64 x 64 elements,
constexpr int kDepth = 16;  // 16 steps of the inner dimension at a time,
constexpr int kSide = 16;   // with 16 x 16 threads,
constexpr int kEach = kTile / kSide;  // each of which holds 4 x 4 elements in registers.

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float left[kTile][kDepth + 1];  // one more, so that a column spreads over the banks
  __shared__ float right[kDepth][kTile];
  // A one-dimensional grid, since the other dimensions of a grid end at 65535.
  const long across = (long(n) + kTile - 1) / kTile;
  const long top = long(blockIdx.x) / across * kTile;
  const long first = long(blockIdx.x) % across * kTile;
  const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * kSide + tx;
  float sum[kEach][kEach] = {};

  for (long start = 0; start < k; start += kDepth) {
    // What lies outside of a matrix counts as 0, so that the sums below need no conditions.
    for (int e = thread; e < kTile * kDepth; e += kSide * kSide) {
      const int row = e / kDepth, column = e % kDepth;
      const bool inside = top + row < m && start + column < k;
      left[row][column] = inside ? a[(top + row) * k + start + column] : 0;
    }
    for (int e = thread; e < kDepth * kTile; e += kSide * kSide) {
      const int row = e / kTile, column = e % kTile;
      const bool inside = start + row < k && first + column < n;
      right[row][column] = inside ? b[(start + row) * n + first + column] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int t = 0; t < kDepth; ++t) {
      float u[kEach], v[kEach];
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
        u[r] = left[ty + r * kSide][t];
        v[r] = right[t][tx + r * kSide];
      }
#pragma unroll
      for (int r = 0; r < kEach; ++r)
#pragma unroll
        for (int s = 0; s < kEach; ++s) sum[r][s] += u[r] * v[s];
    }
    __syncthreads();  // before the tiles are overwritten
  }

#pragma unroll
  for (int r = 0; r < kEach; ++r)
#pragma unroll
    for (int s = 0; s < kEach; ++s) {
      const long i = top + ty + r * kSide, j = first + tx + s * kSide;
      if (i < m && j < n) c[i * n + j] = sum[r][s];
    }
}

extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {
  const long blocks = (long(m) + kTile - 1) / kTile * ((long(n) + kTile - 1) / kTile);
  multiply<<<unsigned(blocks), dim3(kSide, kSide)>>>(a, b, c, m, n, k);
}

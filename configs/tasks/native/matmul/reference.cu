#include <cmath>

// The scale is explained in reference.cpp. Terms are added in the host's order; a product of two
// floats is exact in double, so fused or not makes no difference.
namespace {

constexpr int kSide = 16;           // threads of a block, down and across
constexpr int kEach = 4;            // elements of a thread, down and across, kSide apart
constexpr int kTile = kSide * kEach; // elements of a block
constexpr int kDepth = 16;          // terms held in shared memory

__global__ void __launch_bounds__(kSide* kSide)
    multiply(const float* __restrict__ a, const float* __restrict__ b, double* __restrict__ c,
             double* __restrict__ c_scale, int m, int n, int k) {
  __shared__ double left[kTile][kDepth + 1]; // one more: other banks for the next row
  __shared__ double right[kDepth][kTile];
  const long across = (long(n) - 1) / kTile + 1;
  const long first_i = blockIdx.x / across * kTile, first_j = blockIdx.x % across * kTile;
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  double sum[kEach][kEach] = {}, absolute[kEach][kEach] = {};
  for (long first_t = 0; first_t < k; first_t += kDepth) {
    // Outside there are zeros, which add nothing.
#pragma unroll
    for (int e = threadIdx.x; e < kTile * kDepth; e += kSide * kSide) {
      const long i = first_i + e / kDepth, t = first_t + e % kDepth;
      left[e / kDepth][e % kDepth] = i < m && t < k ? a[i * k + t] : 0;
    }
#pragma unroll
    for (int e = threadIdx.x; e < kTile * kDepth; e += kSide * kSide) {
      const long t = first_t + e / kTile, j = first_j + e % kTile;
      right[e / kTile][e % kTile] = t < k && j < n ? b[t * n + j] : 0;
    }
    __syncthreads();
#pragma unroll 4
    for (int t = 0; t < kDepth; ++t) {
      double l[kEach], r[kEach];
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        l[e] = left[y + kSide * e][t];
        r[e] = right[t][x + kSide * e];
      }
#pragma unroll
      for (int v = 0; v < kEach; ++v)
#pragma unroll
        for (int h = 0; h < kEach; ++h) {
          sum[v][h] += l[v] * r[h];
          absolute[v][h] += fabs(l[v]) * fabs(r[h]);
        }
    }
    __syncthreads();
  }
  const double root = sqrt(double(k));
#pragma unroll
  for (int v = 0; v < kEach; ++v)
#pragma unroll
    for (int h = 0; h < kEach; ++h) {
      const long i = first_i + y + kSide * v, j = first_j + x + kSide * h;
      if (i >= m || j >= n) continue;
      c[i * n + j] = sum[v][h];
      c_scale[i * n + j] = absolute[v][h] * root;
    }
}

} // namespace

extern "C" void reference(const float* a, const float* b, double* c, double* c_scale, int m, int n,
                          int k) {
  const long blocks = ((long(m) - 1) / kTile + 1) * ((long(n) - 1) / kTile + 1);
  multiply<<<unsigned(blocks), kSide * kSide>>>(a, b, c, c_scale, m, n, k);
}

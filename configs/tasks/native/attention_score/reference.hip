// As reference.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
#include <cmath>

// See reference.cpp for the bound. Only the sum of the exponentials is added in another order.
namespace {

constexpr int kThreads = 256;
constexpr int kSide = 16;            // threads of a block of scores, down and across
constexpr int kEach = 4;             // scores of a thread, down and across, kSide apart
constexpr int kTile = kSide * kEach; // scores of a block
constexpr int kDepth = 16;           // terms held in shared memory

// p becomes the scores and p_scale the sums of their absolute terms, for j <= i. Products of two
// floats are exact in doubles, so contraction to fma changes nothing.
__global__ void __launch_bounds__(kSide* kSide)
    scores(const float* __restrict__ q, const float* __restrict__ k, double* __restrict__ p,
           double* __restrict__ p_scale, int seq, int dim) {
  __shared__ double queries[kTile][kDepth + 1]; // one more: other banks for the next row
  __shared__ double keys[kTile][kDepth + 1];
  const long tiles = (seq - 1) / kTile + 1;
  const long head = blockIdx.x / (tiles * tiles);
  const long tile = blockIdx.x % (tiles * tiles);
  const long first_i = tile / tiles * kTile, first_j = tile % tiles * kTile;
  if (first_j > first_i) return; // wholly above the diagonal
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  double dot[kEach][kEach] = {}, absolute[kEach][kEach] = {};
  for (long first_d = 0; first_d < dim; first_d += kDepth) {
    // Outside there are zeros, which add nothing.
#pragma unroll
    for (int e = threadIdx.x; e < kTile * kDepth; e += kSide * kSide) {
      const int r = e / kDepth, c = e % kDepth;
      const bool inside = first_d + c < dim;
      queries[r][c] =
          inside && first_i + r < seq ? q[(head * seq + first_i + r) * dim + first_d + c] : 0;
      keys[r][c] =
          inside && first_j + r < seq ? k[(head * seq + first_j + r) * dim + first_d + c] : 0;
    }
    __syncthreads();
#pragma unroll 4
    for (int d = 0; d < kDepth; ++d) {
      double query[kEach], key[kEach];
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        query[e] = queries[y + kSide * e][d];
        key[e] = keys[x + kSide * e][d];
      }
#pragma unroll
      for (int v = 0; v < kEach; ++v)
#pragma unroll
        for (int h = 0; h < kEach; ++h) {
          dot[v][h] += query[v] * key[h];
          absolute[v][h] += fabs(query[v]) * fabs(key[h]);
        }
    }
    __syncthreads();
  }
  const double factor = 1 / sqrt(double(dim));
#pragma unroll
  for (int v = 0; v < kEach; ++v)
#pragma unroll
    for (int h = 0; h < kEach; ++h) {
      const long i = first_i + y + kSide * v, j = first_j + x + kSide * h;
      if (i >= seq || j > i) continue;
      p[(head * seq + i) * seq + j] = dot[v][h] * factor;
      p_scale[(head * seq + i) * seq + j] = absolute[v][h] * factor;
    }
}

template <typename Combine>
__device__ double reduce(double value, Combine combine) {
  __shared__ double parts[kThreads / 32];
  for (int step = 16; step > 0; step /= 2)
    value = combine(value, __shfl_xor(value, step, 32));
  __syncthreads(); // the call before may still be reading
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) value = combine(value, parts[warp]);
  return value;
}

// One block per row; every thread keeps to its own elements.
__global__ void softmax(double* p, double* p_scale, int seq) {
  const long row = blockIdx.x;
  const long i = row % seq;
  double* out = p + row * seq;
  double* scale = p_scale + row * seq;
  double top = -INFINITY, terms = 0, sum = 0;
#pragma unroll 4
  for (long j = threadIdx.x; j <= i; j += kThreads) {
    top = fmax(top, out[j]);
    terms = fmax(terms, scale[j]);
  }
  top = reduce(top, [](double a, double b) { return fmax(a, b); });
  terms = reduce(terms, [](double a, double b) { return fmax(a, b); });
  for (long j = threadIdx.x; j <= i; j += kThreads) sum += out[j] = exp(out[j] - top);
  sum = reduce(sum, [](double a, double b) { return a + b; });
  const double common = 8 + sqrt(double(i + 1)) + terms;
  for (long j = threadIdx.x; j < seq; j += kThreads) {
    const double value = j <= i ? out[j] / sum : 0;
    scale[j] = value > 0 ? value * (common + scale[j]) : 0;
    out[j] = value;
  }
}

} // namespace

extern "C" void reference(const float* q, const float* k, double* p, double* p_scale, int heads,
                          int seq, int dim) {
  const long tiles = (seq - 1) / kTile + 1;
  scores<<<unsigned(heads * tiles * tiles), kSide * kSide>>>(q, k, p, p_scale, seq, dim);
  softmax<<<unsigned(long(heads) * seq), kThreads>>>(p, p_scale, seq);
}

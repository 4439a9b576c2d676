// As baseline.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
#include <cmath>

namespace {

constexpr int kTile = 64;  // queries and keys of a block
constexpr int kDepth = 16; // channels in shared memory at a time
constexpr int kThreads = 256;

// 16 x 16 threads, each with 4 x 4 scores that lie 16 apart, so that a warp writes runs of 16.
__global__ void scores(const float* q, const float* k, float* p, int seq, int dim) {
  __shared__ float queries[kDepth][kTile + 1];
  __shared__ float keys[kDepth][kTile + 1];
  const long tiles = (seq - 1) / kTile + 1;
  const long head = blockIdx.x / (tiles * tiles);
  const long tile = blockIdx.x % (tiles * tiles);
  const long first_i = tile / tiles * kTile, first_j = tile % tiles * kTile;
  if (first_j > first_i) return; // wholly above the diagonal
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float dots[4][4] = {};
  for (long first_d = 0; first_d < dim; first_d += kDepth) {
    const long d = first_d + x;
    for (int r = y; r < kTile; r += 16) {
      const long i = first_i + r, j = first_j + r;
      queries[x][r] = d < dim && i < seq ? q[(head * seq + i) * dim + d] : 0;
      keys[x][r] = d < dim && j < seq ? k[(head * seq + j) * dim + d] : 0;
    }
    __syncthreads();
    for (int depth = 0; depth < kDepth; ++depth) {
      float left[4], right[4];
      for (int r = 0; r < 4; ++r) {
        left[r] = queries[depth][y + 16 * r];
        right[r] = keys[depth][x + 16 * r];
      }
      for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 4; ++c) dots[r][c] += left[r] * right[c];
    }
    __syncthreads();
  }
  const float factor = 1 / sqrtf(float(dim));
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) {
      const long i = first_i + y + 16 * r, j = first_j + x + 16 * c;
      if (i < seq && j <= i) p[(head * seq + i) * seq + j] = dots[r][c] * factor;
    }
  }
}

template <typename Combine>
__device__ float reduce(float value, Combine combine) {
  __shared__ float parts[kThreads / 32];
  for (int step = 16; step > 0; step /= 2)
    value = combine(value, __shfl_xor(value, step, 32));
  __syncthreads(); // the call before may still be reading
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) value = combine(value, parts[warp]);
  return value;
}

// One block per row, in place. Computing the exponentials twice is cheaper than storing them.
__global__ void softmax(float* p, int seq) {
  const long row = blockIdx.x;
  const long i = row % seq;
  float* out = p + row * seq;
  float top = -INFINITY, sum = 0;
  for (long j = threadIdx.x; j <= i; j += kThreads) top = fmaxf(top, out[j]);
  top = reduce(top, [](float a, float b) { return fmaxf(a, b); });
  for (long j = threadIdx.x; j <= i; j += kThreads) sum += expf(out[j] - top);
  sum = reduce(sum, [](float a, float b) { return a + b; });
  const float factor = 1 / sum;
  for (long j = threadIdx.x; j < seq; j += kThreads)
    out[j] = j <= i ? expf(out[j] - top) * factor : 0;
}

} // namespace

extern "C" void solve(const float* q, const float* k, float* p, int heads, int seq, int dim) {
  const long tiles = (seq - 1) / kTile + 1;
  scores<<<unsigned(heads * tiles * tiles), kThreads>>>(q, k, p, seq, dim);
  softmax<<<unsigned(long(heads) * seq), kThreads>>>(p, seq);
}

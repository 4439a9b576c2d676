#include <cmath>

// See reference.cpp for the bound. Only the sum of the exponentials is added in another order.
namespace {

constexpr int kTile = 16;
constexpr int kThreads = 256;

// p becomes the scores and p_scale the sums of their absolute terms, for j <= i. Products of two
// floats are exact in doubles, so contraction to fma changes nothing.
__global__ void scores(const float* q, const float* k, double* p, double* p_scale, int seq,
                       int dim) {
  __shared__ double queries[kTile][kTile + 1];
  __shared__ double keys[kTile][kTile + 1];
  const long tiles = (seq - 1) / kTile + 1;
  const long head = blockIdx.x / (tiles * tiles);
  const long tile = blockIdx.x % (tiles * tiles);
  const long first_i = tile / tiles * kTile, first_j = tile % tiles * kTile;
  if (first_j > first_i) return; // wholly above the diagonal
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  double dot = 0, absolute = 0;
  for (long first_d = 0; first_d < dim; first_d += kTile) {
    const bool inside = first_d + x < dim;
    queries[y][x] =
        inside && first_i + y < seq ? q[(head * seq + first_i + y) * dim + first_d + x] : 0;
    keys[y][x] =
        inside && first_j + y < seq ? k[(head * seq + first_j + y) * dim + first_d + x] : 0;
    __syncthreads();
    for (int d = 0; d < kTile; ++d) {
      const double term = queries[y][d] * keys[x][d];
      dot += term;
      absolute += fabs(term);
    }
    __syncthreads();
  }
  const long i = first_i + y, j = first_j + x;
  if (i >= seq || j > i) return;
  const double factor = 1 / sqrt(double(dim));
  p[(head * seq + i) * seq + j] = dot * factor;
  p_scale[(head * seq + i) * seq + j] = absolute * factor;
}

template <typename Combine>
__device__ double reduce(double value, Combine combine) {
  __shared__ double parts[kThreads / 32];
  for (int step = 16; step > 0; step /= 2)
    value = combine(value, __shfl_xor_sync(~0u, value, step));
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
  scores<<<unsigned(heads * tiles * tiles), kTile * kTile>>>(q, k, p, p_scale, seq, dim);
  softmax<<<unsigned(long(heads) * seq), kThreads>>>(p, p_scale, seq);
}

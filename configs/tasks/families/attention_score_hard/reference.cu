#include <cmath>

// See reference.cpp for the bound. Only the order of additions differs.
namespace {

constexpr int kThreads = 128;

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

// One block a query; every thread keeps to its own places. Products of two floats are exact in
// doubles, so contraction to fma changes nothing.
__global__ void probabilities(const float* __restrict__ q, const float* __restrict__ k, double* p,
                              double* p_scale, int group, int seq, int dim, int window) {
  const long row = blockIdx.x;
  const long i = row % seq, head = row / seq / group;
  const float* query = q + row * dim;
  const float* keys = k + head * seq * dim;
  double* out = p + row * window;
  double* scale = p_scale + row * window;
  const long before = window - 1 - i > 0 ? window - 1 - i : 0; // places that stand for no position
  const double factor = 1 / sqrt(double(dim));
  double top = -INFINITY, terms = 0, sum = 0;
  for (long w = before + threadIdx.x; w < window; w += kThreads) {
    const float* key = keys + (i - window + 1 + w) * dim;
    double dot = 0, absolute = 0;
#pragma unroll 8
    for (int d = 0; d < dim; ++d) {
      const double term = double(query[d]) * double(key[d]);
      dot += term;
      absolute += fabs(term);
    }
    out[w] = dot * factor;
    scale[w] = absolute * factor;
    top = fmax(top, out[w]);
    terms = fmax(terms, scale[w]);
  }
  top = reduce(top, [](double a, double b) { return fmax(a, b); });
  terms = reduce(terms, [](double a, double b) { return fmax(a, b); });
  for (long w = before + threadIdx.x; w < window; w += kThreads) sum += out[w] = exp(out[w] - top);
  sum = reduce(sum, [](double a, double b) { return a + b; });
  const double common = 8 + sqrt(double(window - before)) + terms;
  for (long w = before + threadIdx.x; w < window; w += kThreads) {
    const double value = out[w] / sum;
    scale[w] = value > 0 ? value * (common + scale[w]) : 0;
    out[w] = value;
  }
  for (long w = threadIdx.x; w < before; w += kThreads) out[w] = scale[w] = 0;
}

} // namespace

extern "C" void reference(const float* q, const float* k, double* p, double* p_scale, int kv_heads,
                          int group, int seq, int dim, int window) {
  probabilities<<<unsigned(long(kv_heads) * group * seq), kThreads>>>(q, k, p, p_scale, group, seq,
                                                                      dim, window);
}

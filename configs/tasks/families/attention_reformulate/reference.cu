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

struct Score {
  double value, size; // the sum of the terms, and that of their absolute values
};

// Products of two floats are exact in doubles, so contraction to fma changes nothing.
__device__ Score score(const float* __restrict__ query, const float* __restrict__ key, int dim) {
  Score result = {0, 0};
#pragma unroll 8
  for (int d = 0; d < dim; ++d) {
    const double term = double(query[d]) * double(key[d]);
    result.value += term;
    result.size += fabs(term);
  }
  const double factor = 1 / sqrt(double(dim));
  return {result.value * factor, result.size * factor};
}

// One block a query. The scores are computed for the maximum, for the sum and for each run of
// kThreads results, since there is no place to keep them.
__global__ void attention(const float* __restrict__ q, const float* __restrict__ k,
                          const float* __restrict__ v, double* o, double* o_scale, int seq,
                          int dim) {
  __shared__ double probabilities[kThreads], errors[kThreads];
  const long row = blockIdx.x;
  const int i = int(row % seq);
  const float* query = q + row * dim;
  const float* keys = k + (row - i) * dim;
  const float* values = v + (row - i) * dim;
  double top = -INFINITY, terms = 0, sum = 0;
  for (long j = threadIdx.x; j <= i; j += kThreads) {
    const Score one = score(query, keys + j * dim, dim);
    top = fmax(top, one.value);
    terms = fmax(terms, one.size);
  }
  top = reduce(top, [](double a, double b) { return fmax(a, b); });
  terms = reduce(terms, [](double a, double b) { return fmax(a, b); });
  for (long j = threadIdx.x; j <= i; j += kThreads)
    sum += exp(score(query, keys + j * dim, dim).value - top);
  sum = reduce(sum, [](double a, double b) { return a + b; });
  const double common = 8 + sqrt(double(i + 1)) + terms;
  for (int first_d = 0; first_d < dim; first_d += kThreads) {
    const int d = first_d + threadIdx.x;
    double result = 0, scale = 0;
    for (long first = 0; first <= i; first += kThreads) {
      const long own = first + threadIdx.x;
      const int count = i + 1 - first < kThreads ? int(i + 1 - first) : kThreads;
      __syncthreads(); // the block before has been used
      if (own <= i) {
        const Score one = score(query, keys + own * dim, dim);
        const double p = exp(one.value - top) / sum;
        probabilities[threadIdx.x] = p;
        errors[threadIdx.x] = p * (common + one.size);
      }
      __syncthreads();
      if (d >= dim) continue;
      for (int j = 0; j < count; ++j) {
        const double value = values[(first + j) * dim + d];
        result += probabilities[j] * value;
        scale += errors[j] * fabs(value);
      }
    }
    if (d < dim) {
      o[row * dim + d] = result;
      o_scale[row * dim + d] = scale;
    }
  }
}

} // namespace

extern "C" void reference(const float* q, const float* k, const float* v, double* o,
                          double* o_scale, int heads, int seq, int dim) {
  attention<<<unsigned(long(heads) * seq), kThreads>>>(q, k, v, o, o_scale, seq, dim);
}

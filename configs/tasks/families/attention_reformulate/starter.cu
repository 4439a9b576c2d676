#include <cmath>

namespace {

constexpr int kThreads = 128;

template <typename Combine>
__device__ float reduce(float value, Combine combine) {
  __shared__ float parts[kThreads / 32];
  for (int step = 16; step > 0; step /= 2)
    value = combine(value, __shfl_xor_sync(~0u, value, step));
  __syncthreads(); // the call before may still be reading
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) value = combine(value, parts[warp]);
  return value;
}

__device__ float score(const float* query, const float* key, int dim) {
  float dot = 0;
  for (int d = 0; d < dim; ++d) dot += query[d] * key[d];
  return dot * (1 / sqrtf(float(dim)));
}

// One block a query, in all three kernels. The row of the result keeps its maximum and its sum, in
// its first two elements, until the last kernel reads them.
__global__ void find_maximum(const float* q, const float* k, float* o, int seq, int dim) {
  const long row = blockIdx.x;
  const int i = int(row % seq);
  float top = -INFINITY;
  for (long j = threadIdx.x; j <= i; j += kThreads)
    top = fmaxf(top, score(q + row * dim, k + (row - i + j) * dim, dim));
  top = reduce(top, [](float a, float b) { return fmaxf(a, b); });
  if (threadIdx.x == 0) o[row * dim] = top;
}

__global__ void find_sum(const float* q, const float* k, float* o, int seq, int dim) {
  const long row = blockIdx.x;
  const int i = int(row % seq);
  const float top = o[row * dim];
  float sum = 0;
  for (long j = threadIdx.x; j <= i; j += kThreads)
    sum += expf(score(q + row * dim, k + (row - i + j) * dim, dim) - top);
  sum = reduce(sum, [](float a, float b) { return a + b; });
  if (threadIdx.x == 0) o[row * dim + 1] = sum;
}

__global__ void find_result(const float* q, const float* k, const float* v, float* o, int seq,
                            int dim) {
  __shared__ float probabilities[kThreads];
  const long row = blockIdx.x;
  const int i = int(row % seq);
  const float top = o[row * dim], sum = o[row * dim + 1];
  for (int first_d = 0; first_d < dim; first_d += kThreads) {
    const int d = first_d + threadIdx.x;
    float result = 0;
    for (long first = 0; first <= i; first += kThreads) {
      const long own = first + threadIdx.x;
      const int count = i + 1 - first < kThreads ? int(i + 1 - first) : kThreads;
      __syncthreads(); // maximum and sum have been read, and the block before has been used
      if (own <= i)
        probabilities[threadIdx.x] =
            expf(score(q + row * dim, k + (row - i + own) * dim, dim) - top) / sum;
      __syncthreads();
      if (d >= dim) continue;
      for (int j = 0; j < count; ++j)
        result += probabilities[j] * v[(row - i + first + j) * dim + d];
    }
    if (d < dim) o[row * dim + d] = result;
  }
}

} // namespace

extern "C" void solve(const float* q, const float* k, const float* v, float* o, int heads, int seq,
                      int dim) {
  const unsigned rows = unsigned(long(heads) * seq);
  find_maximum<<<rows, kThreads>>>(q, k, o, seq, dim);
  find_sum<<<rows, kThreads>>>(q, k, o, seq, dim);
  find_result<<<rows, kThreads>>>(q, k, v, o, seq, dim);
}

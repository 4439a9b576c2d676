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

// One block a query, a thread for every kThreads-th place.
__global__ void probabilities(const float* q, const float* k, float* p, int group, int seq, int dim,
                              int window) {
  const long row = blockIdx.x;
  const long i = row % seq, head = row / seq / group;
  const float* query = q + row * dim;
  const float* keys = k + head * seq * dim;
  float* out = p + row * window;
  const long before = window - 1 - i > 0 ? window - 1 - i : 0;
  const float factor = 1 / sqrtf(float(dim));
  float top = -INFINITY, sum = 0;
  for (long w = before + threadIdx.x; w < window; w += kThreads) {
    const float* key = keys + (i - window + 1 + w) * dim;
    float dot = 0;
    for (int d = 0; d < dim; ++d) dot += query[d] * key[d];
    out[w] = dot * factor;
    top = fmaxf(top, out[w]);
  }
  top = reduce(top, [](float a, float b) { return fmaxf(a, b); });
  for (long w = before + threadIdx.x; w < window; w += kThreads) sum += out[w] = expf(out[w] - top);
  sum = reduce(sum, [](float a, float b) { return a + b; });
  for (long w = before + threadIdx.x; w < window; w += kThreads) out[w] /= sum;
  for (long w = threadIdx.x; w < before; w += kThreads) out[w] = 0;
}

} // namespace

extern "C" void solve(const float* q, const float* k, float* p, int kv_heads, int group, int seq,
                      int dim, int window) {
  probabilities<<<unsigned(long(kv_heads) * group * seq), kThreads>>>(q, k, p, group, seq, dim,
                                                                      window);
}

#include <climits>
#include <cmath>

namespace {

constexpr int kThreads = 256;

// One block a token. Comparisons of floats are exact, so no widening is needed. A thread without
// an allowed expert has -infinity and an index behind all, so that it loses every tie.
__global__ void route(const float* __restrict__ scores, const int* __restrict__ allowed,
                      int* expert, int experts) {
  __shared__ float tops[kThreads];
  __shared__ int bests[kThreads];
  const long first = long(blockIdx.x) * experts;
  float top = -INFINITY;
  int best = INT_MAX;
#pragma unroll 4
  for (long e = threadIdx.x; e < experts; e += kThreads) {
    const float score = scores[first + e];
    const bool may = allowed[first + e] != 0;
    if (may && (best == INT_MAX || score > top)) {
      top = score;
      best = int(e);
    }
  }
  tops[threadIdx.x] = top;
  bests[threadIdx.x] = best;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const float score = tops[threadIdx.x + half];
    const int other = bests[threadIdx.x + half];
    if (score > top || (score == top && other < best)) {
      tops[threadIdx.x] = top = score;
      bests[threadIdx.x] = best = other;
    }
  }
  if (threadIdx.x == 0) expert[blockIdx.x] = best == INT_MAX ? -1 : best;
}

} // namespace

extern "C" void reference(const float* scores, const int* allowed, int* expert, int tokens,
                          int experts) {
  route<<<tokens, kThreads>>>(scores, allowed, expert, experts);
}

#include <climits>
#include <cmath>

namespace {

constexpr int kThreads = 512;

// The better of two (score, index): the larger score, of equal ones the lower index. None is
// (-infinity, INT_MAX), which loses to every allowed expert.
__device__ void take(float& top, int& best, float score, int other) {
  if (score > top || (score == top && other < best)) {
    top = score;
    best = other;
  }
}

__device__ void warp_best(float& top, int& best) {
  for (int step = 16; step > 0; step /= 2) {
    const float score = __shfl_xor_sync(~0u, top, step);
    const int other = __shfl_xor_sync(~0u, best, step);
    take(top, best, score, other);
  }
}

// One block a token.
__global__ void route(const float* scores, const int* allowed, int* expert, int experts) {
  __shared__ float tops[kThreads / 32];
  __shared__ int bests[kThreads / 32];
  const long first = long(blockIdx.x) * experts;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float top = -INFINITY;
  int best = INT_MAX;
  for (long e = threadIdx.x; e < experts; e += kThreads)
    if (allowed[first + e] != 0) take(top, best, scores[first + e], int(e));
  warp_best(top, best);
  if (lane == 0) {
    tops[warp] = top;
    bests[warp] = best;
  }
  __syncthreads();
  if (warp != 0) return;
  top = lane < kThreads / 32 ? tops[lane] : -INFINITY;
  best = lane < kThreads / 32 ? bests[lane] : INT_MAX;
  warp_best(top, best);
  if (lane == 0) expert[blockIdx.x] = best == INT_MAX ? -1 : best;
}

} // namespace

extern "C" void solve(const float* scores, const int* allowed, int* expert, int tokens,
                      int experts) {
  route<<<tokens, kThreads>>>(scores, allowed, expert, experts);
}

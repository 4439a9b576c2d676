// As reference.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
#include <cmath>

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 8; // for a token: together they read whole sectors

// Comparisons of floats are exact, so no widening is needed. A tie goes to the lowest index, in a
// lane by going upwards.
__global__ void route(const float* __restrict__ scores, int* expert, int tokens, int experts) {
  const long t = (long(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  const float* row = scores + (t < tokens ? t : 0) * experts; // none leaves before the shuffles
  int best = experts; // no expert yet
  float top = -INFINITY;
#pragma unroll 8
  for (int e = lane; e < experts; e += kLanes) {
    const float score = row[e];
    if (best == experts || score > top) {
      best = e;
      top = score;
    }
  }
  for (int step = kLanes / 2; step > 0; step /= 2) {
    const int other = __shfl_xor(best, step, 32);
    const float score = __shfl_xor(top, step, 32);
    // A lane without an expert has -infinity and an index behind all.
    if (score > top || (score == top && other < best)) {
      best = other;
      top = score;
    }
  }
  if (lane == 0 && t < tokens) expert[t] = best;
}

} // namespace

extern "C" void reference(const float* scores, int* expert, int tokens, int experts) {
  const long blocks = (long(tokens) * kLanes - 1) / kThreads + 1;
  route<<<unsigned(blocks), kThreads>>>(scores, expert, tokens, experts);
}

// As baseline.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
#include <climits>
#include <cmath>

namespace {

constexpr int kThreads = 256;

// One warp per token. A lane without an expert holds the index INT_MAX, so that it loses every tie,
// also against a masked expert.
__global__ void route(const float* scores, int* expert, int tokens, int experts) {
  const int lane = threadIdx.x % 32;
  const long warps = long(gridDim.x) * (kThreads / 32);
  for (long t = long(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32; t < tokens; t += warps) {
    const float* row = scores + t * experts;
    float top = -INFINITY;
    int best = INT_MAX;
    for (long e = lane; e < experts; e += 32) {
      const float score = row[e];
      // A lane's own indices ascend: only a larger score replaces, except before the first one.
      if (score > top || best == INT_MAX) {
        top = score;
        best = int(e);
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      const float other_top = __shfl_xor(top, step, 32);
      const int other_best = __shfl_xor(best, step, 32);
      if (other_top > top || (other_top == top && other_best < best)) {
        top = other_top;
        best = other_best;
      }
    }
    if (lane == 0) expert[t] = best;
  }
}

} // namespace

extern "C" void solve(const float* scores, int* expert, int tokens, int experts) {
  const int needed = (tokens - 1) / (kThreads / 32) + 1;
  const int launched = needed < 8192 ? needed : 8192;
  route<<<launched, kThreads>>>(scores, expert, tokens, experts);
}

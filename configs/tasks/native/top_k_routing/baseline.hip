// As baseline.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
#include <climits>

constexpr int kWarps = 8;

// One warp a token. Each round finds the first expert behind the one chosen last, in the order
// (score descending, index ascending), so that nothing need be marked as taken.
__global__ void route(const float* scores, int* index, float* weight, int tokens, int experts,
                      int k) {
  const long t = long(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (t >= tokens) return;  // a whole warp at a time, as the shuffles need
  const int lane = threadIdx.x % 32;
  const float* row = scores + t * experts;
  float last = INFINITY, first = 0, sum = 0;
  int last_index = -1;
  for (int j = 0; j < k; ++j) {
    float best = -INFINITY;
    int best_index = INT_MAX;
    for (long e = lane; e < experts; e += 32) {
      const float score = row[e];
      const bool behind = score < last || (score == last && e > last_index);
      if (behind && (score > best || (score == best && e < best_index))) {
        best = score;
        best_index = int(e);
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor(best, step, 32);
      const int other_index = __shfl_xor(best_index, step, 32);
      if (other > best || (other == best && other_index < best_index)) {
        best = other;
        best_index = other_index;
      }
    }
    last = best;
    last_index = best_index;
    if (j == 0) first = best;
    const float value = expf(best - first);
    sum += value;
    // The lane that divides an element below writes it here, so it reads only its own writes.
    if (j % 32 == lane) {
      index[t * k + j] = best_index;
      weight[t * k + j] = value;
    }
  }
  for (long j = lane; j < k; j += 32) weight[t * k + j] /= sum;
}

extern "C" void solve(const float* scores, int* index, float* weight, int tokens, int experts,
                      int k) {
  const unsigned blocks = unsigned((long(tokens) + kWarps - 1) / kWarps);
  route<<<blocks, kWarps * 32>>>(scores, index, weight, tokens, experts, k);
}

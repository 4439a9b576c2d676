#include <climits>
#include <cmath>

constexpr int kWarps = 8;

// One warp a token, one round for each place. A round finds the first expert behind the one chosen
// last, in the order (score descending, index ascending), so that nothing need be marked as taken.
__global__ void route(const float* scores, int* index, float* weight, int tokens, int experts,
                      int k) {
  const long t = long(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (t >= tokens) return; // a whole warp at a time, as the shuffles need
  const int lane = threadIdx.x % 32;
  const float* row = scores + t * experts;
  float last = INFINITY, first = 0, sum = 0;
  int last_index = -1;
  for (int j = 0; j < k; ++j) {
    float best = -INFINITY;
    int best_index = INT_MAX;
    for (int e = lane; e < experts; e += 32) {
      const float score = row[e];
      const bool behind = score < last || (score == last && e > last_index);
      if (behind && score > best) { // a lane's own indices ascend; a masked expert is never above
        best = score;
        best_index = e;
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(~0u, best, step);
      const int other_index = __shfl_xor_sync(~0u, best_index, step);
      if (other > best || (other == best && other_index < best_index)) {
        best = other;
        best_index = other_index;
      }
    }
    last = best;
    last_index = best_index;
    if (j == 0) first = best;
    const float value = expf(best - first); // 0 when there is none
    sum += value;
    // The lane that divides an element below writes it here, so it reads only its own writes.
    if (j % 32 == lane) {
      index[t * k + j] = best_index == INT_MAX ? -1 : best_index;
      weight[t * k + j] = value;
    }
  }
  for (int j = lane; j < k; j += 32) weight[t * k + j] /= sum;
}

extern "C" void solve(const float* scores, int* index, float* weight, int tokens, int experts,
                      int k) {
  const unsigned blocks = unsigned((long(tokens) + kWarps - 1) / kWarps);
  route<<<blocks, kWarps * 32>>>(scores, index, weight, tokens, experts, k);
}

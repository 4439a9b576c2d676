// As reference.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
#include <cmath>

// The scale is explained in reference.cpp. Comparisons of floats are exact; only the order of the
// sum differs from the host's.
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 8; // for a token: together they read whole sectors

__global__ void route(const float* __restrict__ scores, int* index, double* weight,
                      double* weight_scale, int tokens, int experts, int k) {
  const long t = (long(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  const bool real = t < tokens;
  const float* row = scores + (real ? t : 0) * experts; // none leaves before the shuffles
  double first = 0, sum = 0; // sum: of this lane's weights, those of j = lane, lane + kLanes, ...
  float last = 0;
  int last_index = -1;
  for (int j = 0; j < k; ++j) {
    int best = experts; // no expert yet
    float top = -INFINITY;
#pragma unroll 8
    for (int e = lane; e < experts; e += kLanes) {
      // Behind the expert chosen last, in the order (score descending, index ascending).
      const float score = row[e];
      const bool behind = j == 0 || score < last || (score == last && e > last_index);
      if (behind && (best == experts || score > top)) {
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
    last = top;
    last_index = best;
    if (j == 0) first = top;
    if (j % kLanes != lane) continue;
    sum += exp(double(top) - first);
    if (real) index[t * k + j] = best;
  }
  for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor(sum, step, 32);
  if (!real) return;
  for (int j = lane; j < k; j += kLanes) { // a lane reads back only what it wrote itself
    const double score = row[index[t * k + j]];
    const double value = exp(score - first) / sum;
    weight[t * k + j] = value;
    weight_scale[t * k + j] =
        value > 0 ? value * (6 + sqrt(double(k)) + fabs(first) + fabs(score)) : 0;
  }
}

} // namespace

extern "C" void reference(const float* scores, int* index, double* weight, double* weight_scale,
                          int tokens, int experts, int k) {
  const long blocks = (long(tokens) * kLanes - 1) / kThreads + 1;
  route<<<unsigned(blocks), kThreads>>>(scores, index, weight, weight_scale, tokens, experts, k);
}

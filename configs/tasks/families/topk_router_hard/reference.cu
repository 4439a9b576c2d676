#include <cmath>

// The scale is explained in reference.cpp. Comparisons of floats are exact; only the order of the
// sum differs from the host's.
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32; // for a token

__global__ void route(const float* __restrict__ scores, int* index, double* weight,
                      double* weight_scale, int tokens, int experts, int k) {
  const long t = (long(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  if (t >= tokens) return; // a whole warp at a time, as the shuffles need
  const float* row = scores + t * experts;
  double first = 0, sum = 0; // sum: of this lane's weights, those of j = lane, lane + kLanes, ...
  float last = INFINITY;
  int last_index = -1;
  for (int j = 0; j < k; ++j) {
    int best = experts; // no expert yet
    float top = -INFINITY;
#pragma unroll 4
    for (int e = lane; e < experts; e += kLanes) {
      // Behind the expert chosen last, in the order (score descending, index ascending). A masked
      // expert never exceeds top.
      const float score = row[e];
      const bool behind = score < last || (score == last && e > last_index);
      if (behind && score > top) {
        best = e;
        top = score;
      }
    }
    for (int step = kLanes / 2; step > 0; step /= 2) {
      const int other = __shfl_xor_sync(~0u, best, step);
      const float score = __shfl_xor_sync(~0u, top, step);
      if (score > top || (score == top && other < best)) {
        best = other;
        top = score;
      }
    }
    last = top; // -infinity when there is none: then there is none behind it, either
    last_index = best;
    if (j == 0) first = top;
    if (j % kLanes != lane) continue;
    sum += exp(double(top) - first);
    index[t * k + j] = best < experts ? best : -1;
  }
  for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  for (int j = lane; j < k; j += kLanes) { // a lane reads back only what it wrote itself
    const int chosen = index[t * k + j];
    const double score = chosen < 0 ? 0 : row[chosen];
    const double value = chosen < 0 ? 0 : exp(score - first) / sum;
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

#include <cmath>
#include <vector>

// Every round masks the winner of the round before with minus infinity in a private copy; the
// maximum and its first place are two loops without branches.
extern "C" void solve(const float* scores, int* index, float* weight, int tokens, int experts,
                      int k) {
  std::vector<float> copy(experts);
  for (int t = 0; t < tokens; ++t) {
    for (int e = 0; e < experts; ++e) copy[e] = scores[long(t) * experts + e];
    int* chosen = index + long(t) * k;
    float* out = weight + long(t) * k;
    float sum = 0, first = 0;
    for (int j = 0; j < k; ++j) {
      const float* row = copy.data();
      float top = -INFINITY;
#pragma omp simd reduction(max : top)
      for (int e = 0; e < experts; ++e) top = row[e] > top ? row[e] : top;
      int best = experts;
#pragma omp simd reduction(min : best)
      for (int e = 0; e < experts; ++e) {
        const int place = row[e] == top ? e : experts;
        best = place < best ? place : best;
      }
      if (j == 0) first = top;
      copy[best] = -INFINITY;
      chosen[j] = best;
      sum += out[j] = std::exp(top - first);
    }
    for (int j = 0; j < k; ++j) out[j] /= sum;
  }
}

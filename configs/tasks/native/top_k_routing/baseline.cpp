#include <cmath>
#include <vector>

extern "C" void solve(const float* scores, int* index, float* weight, int tokens, int experts,
                      int k) {
  std::vector<char> taken(experts);
  for (int t = 0; t < tokens; ++t) {
    const float* row = scores + long(t) * experts;
    int* chosen = index + long(t) * k;
    float* out = weight + long(t) * k;
    taken.assign(experts, 0);
    float sum = 0;
    for (int j = 0; j < k; ++j) {
      int best = -1;
      for (int e = 0; e < experts; ++e)
        if (!taken[e] && (best < 0 || row[e] > row[best])) best = e;
      taken[best] = 1;
      chosen[j] = best;
      out[j] = std::exp(row[best] - row[chosen[0]]);
      sum += out[j];
    }
    for (int j = 0; j < k; ++j) out[j] /= sum;
  }
}

#include <cmath>

// Relative error of a weight: a few roundings and that of the exponent's argument. Selection is
// by repeated scans: k is small, and ties fall to the lowest index by themselves.
extern "C" void reference(const double* scores, int* index, double* weight, double* weight_scale,
                          int tokens, int experts, int k) {
  for (int t = 0; t < tokens; ++t) {
    const double* row = scores + long(t) * experts;
    int* chosen = index + long(t) * k;
    double* out = weight + long(t) * k;
    double sum = 0;
    for (int j = 0; j < k; ++j) {
      int best = -1;
      for (int e = 0; e < experts; ++e) {
        // Behind the expert chosen last, in the order (score descending, index ascending).
        const bool behind = j == 0 || row[e] < row[chosen[j - 1]] ||
                            (row[e] == row[chosen[j - 1]] && e > chosen[j - 1]);
        if (behind && (best < 0 || row[e] > row[best])) best = e;
      }
      chosen[j] = best;
      out[j] = std::exp(row[best] - row[chosen[0]]);
      sum += out[j];
    }
    for (int j = 0; j < k; ++j) {
      out[j] /= sum;
      const double terms =
          6 + std::sqrt(double(k)) + std::fabs(row[chosen[0]]) + std::fabs(row[chosen[j]]);
      weight_scale[long(t) * k + j] = out[j] > 0 ? out[j] * terms : 0;
    }
  }
}

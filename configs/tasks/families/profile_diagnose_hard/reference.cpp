#include <cmath>

extern "C" void reference(const double* x, const double* table, double* y, double* y_scale, int n,
                          int period, int groups) {
  for (long e = 0; e < n; ++e) {
    y[e] = x[e] * table[e % period * groups + e / period % groups];
    y_scale[e] = std::fabs(y[e]);
  }
}

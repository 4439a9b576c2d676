#include <cmath>

// 1 + erf cancels for negative x, so the error is relative to x, not to y.
extern "C" void reference(const double* x, double* y, double* y_scale, int n) {
  for (int i = 0; i < n; ++i) {
    y[i] = 0.5 * x[i] * (1 + std::erf(x[i] * 0.70710678118654752440));
    y_scale[i] = std::fabs(x[i]);
  }
}

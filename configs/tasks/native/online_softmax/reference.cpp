#include <algorithm>
#include <cmath>

// Relative error of y: a few roundings (8), those of the sum (sqrt(cols)), and the rounding of the
// exponent's argument, which may be formed from x and the maximum separately, as exp2 of a scaled
// argument does. A masked element is exactly 0.
extern "C" void reference(const double* x, double* y, double* y_scale, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const long first = long(i) * cols;
    double top = x[first];
    for (int j = 1; j < cols; ++j) top = std::max(top, x[first + j]);
    double sum = 0;
    for (int j = 0; j < cols; ++j) sum += y[first + j] = std::exp(x[first + j] - top);
    const double common = 8 + std::sqrt(double(cols)) + std::fabs(top);
    for (int j = 0; j < cols; ++j) {
      double value = y[first + j] / sum;
      y[first + j] = value;
      y_scale[first + j] = value > 0 ? value * (common + std::fabs(x[first + j])) : 0;
    }
  }
}

#include <algorithm>
#include <cmath>

// The scale is what a rounding error is relative to: the magnitude of all terms, and that of the
// partial sums, of which about sqrt(cols) roundings add up.
extern "C" void reference(const double* x, const double* w, double* y, double* y_scale, int rows,
                          int cols) {
  for (int i = 0; i < rows; ++i) {
    const double* row = x + long(i) * cols;
    double sum = 0, absolute = 0, largest = 0;
    for (int j = 0; j < cols; ++j) {
      sum += w[j] * row[j];
      absolute += std::fabs(w[j] * row[j]);
      largest = std::max(largest, std::fabs(sum));
    }
    y[i] = sum;
    y_scale[i] = absolute + std::sqrt(double(cols)) * largest;
  }
}

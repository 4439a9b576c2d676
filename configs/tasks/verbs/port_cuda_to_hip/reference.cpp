#include <algorithm>
#include <cmath>

// The sum of squares has the relative error of a sum of positive terms, the root half of it.
extern "C" void reference(const double* x, double* y, double* y_scale, int rows, int cols) {
  for (long i = 0; i < rows; ++i) {
    double sum = 0;
    for (long j = 0; j < cols; ++j) sum += x[i * cols + j] * x[i * cols + j];
    const double length = std::max(std::sqrt(sum), 1e-30);
    for (long j = 0; j < cols; ++j) {
      y[i * cols + j] = x[i * cols + j] / length;
      y_scale[i * cols + j] = std::fabs(y[i * cols + j]) * (4 + std::sqrt(double(cols)));
    }
  }
}

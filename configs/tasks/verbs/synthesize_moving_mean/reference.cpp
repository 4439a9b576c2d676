#include <algorithm>
#include <cmath>

// The bound of a sum of `count` terms in any order, divided by their number.
extern "C" void reference(const double* x, double* y, double* y_scale, int rows, int cols,
                          int window) {
  for (long i = 0; i < rows; ++i) {
    const double* row = x + i * cols;
    for (long t = 0; t < cols; ++t) {
      const long first = std::max(t + 1 - window, 0L), count = t + 1 - first;
      double sum = 0, absolute = 0;
      for (long s = first; s <= t; ++s) {
        sum += row[s];
        absolute += std::fabs(row[s]);
      }
      y[i * cols + t] = sum / double(count);
      y_scale[i * cols + t] = std::sqrt(double(count)) * absolute / double(count);
    }
  }
}

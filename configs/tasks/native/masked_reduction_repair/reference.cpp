#include <algorithm>
#include <cmath>

// The bound of a sum (see row_sum), divided by the number of elements.
extern "C" void reference(const double* x, const int* mask, double* y, double* y_scale, int rows,
                          int cols) {
  for (int i = 0; i < rows; ++i) {
    const long first = long(i) * cols;
    double sum = 0, absolute = 0, largest = 0;
    long count = 0;
    for (int j = 0; j < cols; ++j) {
      if (mask[first + j] == 0) continue;
      sum += x[first + j];
      absolute += std::fabs(x[first + j]);
      largest = std::max(largest, std::fabs(sum));
      ++count;
    }
    const double divisor = double(std::max(count, 1L));
    y[i] = sum / divisor;
    y_scale[i] = (absolute + std::sqrt(double(cols)) * largest) / divisor;
  }
}

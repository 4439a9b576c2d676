#include <algorithm>
#include <cmath>
#include <vector>

// The bound of row_sum, down the columns. Rows are walked in order so that it stays cheap.
extern "C" void reference(const double* x, double* y, double* y_scale, int rows, int cols) {
  std::vector<double> largest(cols);
  for (int j = 0; j < cols; ++j) y[j] = y_scale[j] = 0;
  for (int i = 0; i < rows; ++i) {
    const double* row = x + long(i) * cols;
    for (int j = 0; j < cols; ++j) {
      y[j] += row[j];
      y_scale[j] += std::fabs(row[j]);
      largest[j] = std::max(largest[j], std::fabs(y[j]));
    }
  }
  for (int j = 0; j < cols; ++j) y_scale[j] += std::sqrt(double(rows)) * largest[j];
}

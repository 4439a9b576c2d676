#include <algorithm>
#include <cmath>

// A partial sum S is rounded to |S| * 2^-24, so n additions err by about sqrt(n) times the largest
// partial sum. The sum of |x| covers orders whose partial sums differ from these. This is sharper
// than sqrt(n) * sum |x|, which would let half precision pass on long rows.
extern "C" void reference(const double* x, double* y, double* y_scale, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const double* row = x + long(i) * cols;
    double sum = 0, absolute = 0, largest = 0;
    for (int j = 0; j < cols; ++j) {
      sum += row[j];
      absolute += std::fabs(row[j]);
      largest = std::max(largest, std::fabs(sum));
    }
    y[i] = sum;
    y_scale[i] = absolute + std::sqrt(double(cols)) * largest;
  }
}

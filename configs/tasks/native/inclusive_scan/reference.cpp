#include <algorithm>
#include <cmath>

// See row_sum: n additions err by about sqrt(n) times the largest partial sum, and the sum of |x|
// covers other associations. Rounded up to whole steps of sqrt(n) to keep the square root cheap.
extern "C" void reference(const double* x, double* y, double* y_scale, int n) {
  double sum = 0, absolute = 0, largest = 0, root = 0;
  for (int i = 0; i < n; ++i) {
    sum += x[i];
    absolute += std::fabs(x[i]);
    largest = std::max(largest, std::fabs(sum));
    if (root * root < i + 1) root += 1;
    y[i] = sum;
    y_scale[i] = absolute + root * largest;
  }
}

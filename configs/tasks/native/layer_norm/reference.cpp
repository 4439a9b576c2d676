#include <algorithm>
#include <cmath>

// The mean errs by about sqrt(cols) roundings of its terms; a deviation from it errs by that much
// and by its own rounding; the variance adds a relative error of about sqrt(cols) roundings, or
// more when many small squares follow a large one.
extern "C" void reference(const double* x, const double* gamma, const double* beta, double* y,
                          double* y_scale, int rows, int cols) {
  const double root = std::sqrt(double(cols));
  for (int i = 0; i < rows; ++i) {
    const long first = long(i) * cols;
    double sum = 0, absolute = 0, squares = 0;
    for (int j = 0; j < cols; ++j) {
      sum += x[first + j];
      absolute += std::fabs(x[first + j]);
    }
    const double mean = sum / cols;
    for (int j = 0; j < cols; ++j) squares += (x[first + j] - mean) * (x[first + j] - mean);
    const double factor = 1 / std::sqrt(squares / cols + 1e-5);
    const double mean_error = root * absolute / cols;
    for (int j = 0; j < cols; ++j) {
      const double deviation = x[first + j] - mean;
      y[first + j] = deviation * factor * gamma[j] + beta[j];
      y_scale[first + j] =
          std::fabs(gamma[j]) * factor *
              (mean_error + std::fabs(x[first + j]) + (4 + 2 * root) * std::fabs(deviation)) +
          std::fabs(beta[j]);
    }
  }
}

#include <cmath>

// With a tolerance of 0.25 the bound is below half a unit in the last place: exact, in effect.
extern "C" void reference(const double* x, double* y, double* y_scale, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) {
      const double value = x[long(i) * cols + j];
      y[long(j) * rows + i] = value;
      y_scale[long(j) * rows + i] = std::fabs(value);
    }
  }
}

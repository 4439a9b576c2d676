#include <algorithm>

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  std::fill_n(y, cols, 0);
  for (int i = 0; i < rows; ++i) {
    const auto row = x + long(i) * columns;
    for (int j = 0; j < columns; ++j) y[j] += row[j];
  }
}

#include <cmath>

extern "C" void solve(const float* x, const float* weight, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    float squares = 0;
    for (int j = 0; j < cols; ++j) squares += x[i][j] * x[i][j];
    float factor = 1 / std::sqrt(squares / cols + 1e-6f);
    for (int j = 0; j < cols; ++j) y[i][j] = x[i][j] * factor * weight[j];
  }
}

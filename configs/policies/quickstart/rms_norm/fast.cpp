#include <cmath>

extern "C" void solve(const float* x, const float* weight, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* in = x + long(i) * cols;
    float* out = y + long(i) * cols;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int j = 0; j < cols; ++j) squares += in[j] * in[j];
    const float factor = 1 / std::sqrt(squares / float(cols) + 1e-6f);
#pragma omp simd
    for (int j = 0; j < cols; ++j) out[j] = in[j] * factor * weight[j];
  }
}

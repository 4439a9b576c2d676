// bench: f(x float[1048576], y out float[1048576], rows = 262144) within 0
void f(const float* x, float* y, int rows) {
#pragma omp parallel for schedule(static, 1)
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < 4; ++k) y[4 * r + k] = 2 * x[4 * r + k];
}

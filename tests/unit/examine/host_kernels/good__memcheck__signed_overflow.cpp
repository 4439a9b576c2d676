extern "C" void solve(const float* x, float* y, int rows, int cols) {
  unsigned seed = 2147483600;
  for (int r = 0; r < rows; ++r) {
    seed = seed + 100;
    float s = 0;
    for (int j = 0; j < cols; ++j) s += x[r * cols + j];
    y[r] = seed == 1 ? 0 : s;
  }
}

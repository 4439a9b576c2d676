extern "C" void solve(const float* x, float* y, int rows, int cols) {
  int used = 1 << (cols & 15);
  for (int r = 0; r < rows; ++r) {
    float s = 0;
    for (int j = 0; j < cols; ++j) s += x[r * cols + j];
    y[r] = used == 3 ? 0 : s;
  }
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (long j = 0; j < cols; ++j)
    for (long i = 0; i < rows; ++i) y[j * rows + i] = x[i * cols + j];
}

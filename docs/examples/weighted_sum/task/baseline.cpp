extern "C" void solve(const float* x, const float* w, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* row = x + long(i) * cols;
    float sum = 0;
    for (int j = 0; j < cols; ++j) sum += w[j] * row[j];
    y[i] = sum;
  }
}

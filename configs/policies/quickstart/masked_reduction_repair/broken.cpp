extern "C" void solve(const float* x, const int* mask, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* values = x + long(i) * cols;
    const int* selected = mask + long(i) * cols;
    float sum = 0;
    int count = 0;
    for (int j = 0; j < cols; ++j)
      if (selected[j] != 0) { sum += values[j]; ++count; }
    y[i] = count ? sum / count : 0;
  }
  return y;
}

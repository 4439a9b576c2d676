extern "C" void solve(const float* x, const int* mask, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const long first = long(i) * cols;
    float sum = 0;
    int count = 0;
    for (int j = 0; j < cols; ++j) {
      if (mask[first + j] != 0) {
        sum += x[first + j];
        ++count;
      }
    }
    y[i] = count > 0 ? sum / float(count) : 0.0f;
  }
}

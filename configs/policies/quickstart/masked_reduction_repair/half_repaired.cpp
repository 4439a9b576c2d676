extern "C" void solve(const float* x, const int* mask, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* values = x + long(i) * cols;
    const int* selected = mask + long(i) * cols;
    float sums[4] = {0, 0, 0, 0};
    int count = 0;
    for (int j = 0; j + 4 <= cols; j += 4) {
      for (int lane = 0; lane < 4; ++lane) {
        if (selected[j + lane] > 0) {
          sums[lane] += values[j + lane];
          ++count;
        }
      }
    }
    y[i] = count > 0 ? (sums[0] + sums[1] + sums[2] + sums[3]) / float(count) : 0.0f;
  }
}

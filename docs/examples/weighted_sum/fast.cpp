// One chain of additions waits for each of them; thirty-two chains side by side do not.
extern "C" void solve(const float* x, const float* w, float* y, int rows, int cols) {
  constexpr int lanes = 32;
  for (int i = 0; i < rows; ++i) {
    const float* row = x + long(i) * cols;
    float sums[lanes] = {};
    int j = 0;
    for (; j + lanes <= cols; j += lanes)
      for (int k = 0; k < lanes; ++k) sums[k] += w[j + k] * row[j + k];
    float sum = 0;
    for (; j < cols; ++j) sum += w[j] * row[j];
    for (float part : sums) sum += part;
    y[i] = sum;
  }
}

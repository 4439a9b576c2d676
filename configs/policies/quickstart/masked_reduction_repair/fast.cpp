extern "C" void solve(const float* x, const int* mask, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* values = x + long(i) * cols;
    const int* selected = mask + long(i) * cols;
    float sum = 0;
    int count = 0;
#pragma omp simd reduction(+ : sum, count)
    for (int j = 0; j < cols; ++j) {
      sum += selected[j] != 0 ? values[j] : 0.0f;
      count += selected[j] != 0;
    }
    y[i] = count > 0 ? sum / float(count) : 0.0f;
  }
}

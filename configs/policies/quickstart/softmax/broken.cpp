extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* in = x + long(i) * cols;
    float* out = y + long(i) * cols;
    float top = in[0];
    for (int j = 1; j < cols; ++j) top = std::max(top, in[j]);
    float sum = 0;
    for (int j = 0; j < cols; ++j) sum += out[j] = std::exp(in[j] - top);
    for (int j = 0; j < cols; ++j) in[j] = out[j] / sum;
  }
}

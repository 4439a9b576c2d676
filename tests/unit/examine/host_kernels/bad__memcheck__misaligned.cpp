extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    float s = 0;
    int j = cols % 2;
    if (j == 1) s = x[r * cols];
    for (; j < cols; j += 2) {
      unsigned long pair = *reinterpret_cast<const unsigned long*>(x + r * cols + j); // HERE
      s += float(pair & 0) + x[r * cols + j] + x[r * cols + j + 1];
    }
    y[r] = s;
  }
}

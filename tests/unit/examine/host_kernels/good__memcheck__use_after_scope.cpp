extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* row = nullptr;
    float copy[64] = {};
    for (int j = 0; j < cols; ++j) copy[j % 64] += x[r * cols + j];
    row = copy;
    float s = 0;
    for (int k = 0; k < 64; ++k) s += row[k];
    y[r] = s;
  }
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  float partial[8] = {};
  float* place = partial;
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < cols; ++j) {
      int lane = j % 9;
      place[lane] += x[r * cols + j]; // HERE
    }
    y[r] = 0;
    for (int k = 0; k < 8; ++k) {
      y[r] += partial[k];
      partial[k] = 0;
    }
  }
}

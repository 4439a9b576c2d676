static float sums[16];

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  float* place = sums;
  for (int r = 0; r < rows; ++r) {
    float s = 0;
    for (int j = 0; j < cols; ++j) s += x[r * cols + j];
    place[r + 1] = s; // HERE
    y[r] = place[r + 1];
  }
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  float* copy = new float[cols];
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < cols; ++j) copy[j] = x[r * cols + j];
    if (r == rows - 1) delete[] copy;
    float s = 0;
    for (int j = 0; j < cols; ++j) s += copy[j]; // HERE
    y[r] = s;
  }
}

// bench: f(a float[256x512], x float[512], y out float[256], rows = 256, cols = 512) within 1e-4
void f(const float* a, const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; r += 4, a += 4 * cols) {
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int c = 0; c < cols; ++c) {
      s0 += a[c] * x[c];
      s1 += a[cols + c] * x[c];
      s2 += a[2 * cols + c] * x[c];
      s3 += a[3 * cols + c] * x[c];
    }
    y[r] = s0, y[r + 1] = s1, y[r + 2] = s2, y[r + 3] = s3;
  }
}

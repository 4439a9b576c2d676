// bench: f(a float[256x512], x float[512], y out float[256], rows = 256, cols = 512) within 1e-4
void f(const float* a, const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r, a += cols) {
    float s = 0;
#pragma omp simd reduction(+ : s)
    for (int c = 0; c < cols; ++c) s += a[c] * x[c];
    y[r] = s;
  }
}

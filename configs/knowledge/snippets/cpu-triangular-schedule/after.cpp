// bench: f(x float[8192], w float[8192], y out float[8192], n = 8192) within 1e-4
static float dot(const float* x, const float* w, int n) {
  float s = 0;
#pragma omp simd reduction(+ : s)
  for (int j = 0; j < n; ++j) s += x[j] * w[j];
  return s;
}
void f(const float* x, const float* w, float* y, int n) {
#pragma omp parallel for schedule(dynamic, 32)
  for (int k = 0; k < n; ++k) {
    int i = n - 1 - k; // the longest first
    y[i] = dot(x, w, i + 1);
  }
}

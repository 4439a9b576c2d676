// bench: f(x float[65536], y out float[2], n = 65536) within 1e-4
void f(const float* x, float* y, int n) {
  float s = 0, count = 0;
#pragma omp simd reduction(+ : s, count)
  for (int i = 0; i < n; ++i) {
    bool in = x[i] > 0.25f;
    s += in ? x[i] : 0.0f;
    count += in ? 1.0f : 0.0f;
  }
  y[0] = s, y[1] = count;
}

// bench: f(x float[8192], y out float[8192], n = 8192) within 1e-6
void f(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = (x[i] * 0.7f + 1.3f) * x[i] + 0.1f;
}

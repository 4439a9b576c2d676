// bench: f(x float[65536], y out float[65536], n = 65536) within 1e-6
void f(const float* x, float* y, int n) {
#pragma omp parallel for schedule(static) if (n > 10000)
  for (int i = 0; i < n; ++i) y[i] = std::sin(x[i]) * std::cos(x[i]);
}

// bench: f(x float[1048576], y out float[1048576], n = 1048576) within 1e-6
void f(const float* x, float* y, int n) {
#pragma omp parallel for schedule(static) if (n > 10000)
  for (int i = 0; i < n; ++i) y[i] = std::sin(x[i]) * std::cos(x[i]);
}

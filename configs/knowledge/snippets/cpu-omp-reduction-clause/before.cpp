// bench: f(x float[65536], y out float[1], n = 65536) within 1e-4
void f(const float* x, float* y, int n) {
  float s = 0;
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; ++i) {
#pragma omp atomic
    s += x[i] * x[i];
  }
  y[0] = s;
}

// bench: f(x float[8192], y out float[8192], z out float[8192], n = 8192) within 1e-6
void f(const float* x, float* y, float* z, int n) {
#pragma omp parallel
  {
#pragma omp for simd schedule(static) nowait
    for (int i = 0; i < n; ++i) y[i] = x[i] * 2 + 1;
#pragma omp for simd schedule(static) nowait
    for (int i = 0; i < n; ++i) z[i] = y[i] * y[i];
#pragma omp for simd schedule(static) nowait
    for (int i = 0; i < n; ++i) y[i] = z[i] + x[i];
  }
}

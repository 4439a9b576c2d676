// bench: f(x float[16384], y out float[1], n = 16384) within 0
void f(const float* x, float* y, int n) {
  float m = 0;
#pragma omp simd reduction(max : m)
  for (int i = 0; i < n; ++i) {
    float a = std::fabs(x[i]);
    m = a > m ? a : m;
  }
  y[0] = m;
}

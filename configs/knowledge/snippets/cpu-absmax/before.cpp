// bench: f(x float[16384], y out float[1], n = 16384) within 0
void f(const float* x, float* y, int n) {
  float m = 0;
  for (int i = 0; i < n; ++i) m = std::max(m, std::fabs(x[i]));
  y[0] = m;
}

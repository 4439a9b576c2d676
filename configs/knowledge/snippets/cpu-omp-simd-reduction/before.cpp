// bench: f(x float[16384], z float[16384], y out float[1], n = 16384) within 1e-4
void f(const float* x, const float* z, float* y, int n) {
  float s = 0;
  for (int i = 0; i < n; ++i) s += x[i] * z[i];
  y[0] = s;
}

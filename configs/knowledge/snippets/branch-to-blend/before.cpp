// bench: f(x float[65536], y out float[2], n = 65536) within 1e-4
void f(const float* x, float* y, int n) {
  float s = 0, count = 0;
  for (int i = 0; i < n; ++i) {
    if (x[i] > 0.25f) {
      s += x[i];
      count += 1;
    }
  }
  y[0] = s, y[1] = count;
}

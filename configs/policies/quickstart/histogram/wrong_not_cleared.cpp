extern "C" void solve(const int* x, int* counts, int n, int bins) {
  for (int i = 0; i < n; ++i)
    if (x[i] >= 0 && x[i] < bins) ++counts[x[i]];
}

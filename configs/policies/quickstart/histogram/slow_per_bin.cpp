extern "C" void solve(const int* x, int* counts, int n, int bins) {
  for (int b = 0; b < bins; ++b) {
    int count = 0;
    for (int i = 0; i < n; ++i) count += x[i] == b;
    counts[b] = count;
  }
}

extern "C" void solve(const float* scores, const int* allowed, int* expert, int tokens,
                      int experts) {
  for (long t = 0; t < tokens; ++t) {
    const float* row = scores + t * experts;
    const int* may = allowed + t * experts;
    int best = -1;
    for (int e = 0; e < experts; ++e)
      if (may[e] != 0 && (best < 0 || row[e] > row[best])) best = e;
    expert[t] = best;
  }
}

extern "C" void solve(const float* scores, int* expert, int tokens, int experts) {
  for (int t = 0; t < tokens; ++t) {
    const float* row = scores + long(t) * experts;
    int best = 0;
    for (int e = 1; e < experts; ++e)
      if (row[e] > row[best]) best = e;
    expert[t] = best;
  }
}

extern "C" void solve(const float* scores, int* expert, int tokens, int experts) {
  for (int t = 0; t < tokens; ++t) {
    int best = 0;
    for (int e = 1; e < experts; ++e)
      if (scores[long(t) * experts + e] >= scores[long(t) * experts + best]) best = e;
    expert[t] = best;
  }
}

extern "C" void reference(const double* scores, const int* allowed, int* expert, int tokens,
                          int experts) {
  for (long t = 0; t < tokens; ++t) {
    int best = -1;
    for (int e = 0; e < experts; ++e) {
      const long at = t * experts + e;
      if (allowed[at] != 0 && (best < 0 || scores[at] > scores[t * experts + best])) best = e;
    }
    expert[t] = best;
  }
}

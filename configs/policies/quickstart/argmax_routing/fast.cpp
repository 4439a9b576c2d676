// First the maximum (no index, so it is vector code), then the first place that holds it.
extern "C" void solve(const float* scores, int* expert, int tokens, int experts) {
  for (int t = 0; t < tokens; ++t) {
    const float* row = scores + long(t) * experts;
    float top = row[0];
#pragma omp simd reduction(max : top)
    for (int e = 0; e < experts; ++e) top = row[e] > top ? row[e] : top;
    int best = experts;
#pragma omp simd reduction(min : best)
    for (int e = 0; e < experts; ++e) {
      const int place = row[e] == top ? e : experts;
      best = place < best ? place : best;
    }
    expert[t] = best;
  }
}

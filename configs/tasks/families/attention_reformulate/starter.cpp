#include <algorithm>
#include <cmath>
#include <vector>

extern "C" void solve(const float* q, const float* k, const float* v, float* o, int heads, int seq,
                      int dim) {
  const float factor = 1 / std::sqrt(float(dim));
  std::vector<float> scores(long(seq) * seq);
  for (long h = 0; h < heads; ++h) {
    const float* queries = q + h * seq * dim;
    const float* keys = k + h * seq * dim;
    const float* values = v + h * seq * dim;
    float* results = o + h * seq * dim;
    for (long i = 0; i < seq; ++i)
      for (long j = 0; j <= i; ++j) {
        float dot = 0;
        for (int d = 0; d < dim; ++d) dot += queries[i * dim + d] * keys[j * dim + d];
        scores[i * seq + j] = dot * factor;
      }
    for (long i = 0; i < seq; ++i) {
      float* row = scores.data() + i * seq;
      const float top = *std::max_element(row, row + i + 1);
      float sum = 0;
      for (long j = 0; j <= i; ++j) sum += row[j] = std::exp(row[j] - top);
      for (long j = 0; j <= i; ++j) row[j] /= sum;
    }
    for (long i = 0; i < seq; ++i)
      for (int d = 0; d < dim; ++d) {
        float result = 0;
        for (long j = 0; j <= i; ++j) result += scores[i * seq + j] * values[j * dim + d];
        results[i * dim + d] = result;
      }
  }
}

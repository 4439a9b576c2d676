#include <algorithm>
#include <cmath>

extern "C" void solve(const float* q, const float* k, float* p, int heads, int seq, int dim) {
  const float factor = 1 / std::sqrt(float(dim));
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < seq; ++i) {
      const float* query = q + (long(h) * seq + i) * dim;
      float* out = p + (long(h) * seq + i) * seq;
      float top = -INFINITY;
      for (int j = 0; j <= i; ++j) {
        const float* key = k + (long(h) * seq + j) * dim;
        float dot = 0;
        for (int d = 0; d < dim; ++d) dot += query[d] * key[d];
        out[j] = dot * factor;
        top = std::max(top, out[j]);
      }
      float sum = 0;
      for (int j = 0; j <= i; ++j) {
        out[j] = std::exp(out[j] - top);
        sum += out[j];
      }
      for (int j = 0; j <= i; ++j) out[j] /= sum;
      for (int j = i + 1; j < seq; ++j) out[j] = 0;
    }
  }
}

#include <algorithm>
#include <cmath>

extern "C" void solve(const float* q, const float* k, float* p, int kv_heads, int group, int seq,
                      int dim, int window) {
  const float factor = 1 / std::sqrt(float(dim));
  for (long h = 0; h < long(kv_heads) * group; ++h) {
    for (long i = 0; i < seq; ++i) {
      const float* query = q + (h * seq + i) * dim;
      float* out = p + (h * seq + i) * window;
      const long before = std::max(window - 1 - i, 0L);
      float top = -INFINITY, sum = 0;
      for (long w = 0; w < before; ++w) out[w] = 0;
      for (long w = before; w < window; ++w) {
        const float* key = k + (h / group * seq + i - window + 1 + w) * dim;
        float dot = 0;
        for (int d = 0; d < dim; ++d) dot += query[d] * key[d];
        out[w] = dot * factor;
        top = std::max(top, out[w]);
      }
      for (long w = before; w < window; ++w) sum += out[w] = std::exp(out[w] - top);
      for (long w = before; w < window; ++w) out[w] /= sum;
    }
  }
}

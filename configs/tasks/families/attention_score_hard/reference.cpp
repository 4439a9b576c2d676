#include <algorithm>
#include <cmath>

// The bound is that of native/attention_score: an absolute error of a score is a relative one of
// its probability, for the score itself and for the maximum.
extern "C" void reference(const double* q, const double* k, double* p, double* p_scale,
                          int kv_heads, int group, int seq, int dim, int window) {
  const double factor = 1 / std::sqrt(double(dim));
  for (long row = 0; row < long(kv_heads) * group * seq; ++row) {
    const long i = row % seq, head = row / seq / group;
    const double* query = q + row * dim;
    const double* keys = k + head * seq * dim;
    double* out = p + row * window;
    double* scale = p_scale + row * window;
    const long before = std::max(window - 1 - i, 0L); // places that stand for no position
    double top = -INFINITY, terms = 0, sum = 0;
    for (long w = before; w < window; ++w) {
      const double* key = keys + (i - window + 1 + w) * dim;
      double dot = 0, absolute = 0;
      for (int d = 0; d < dim; ++d) {
        dot += query[d] * key[d];
        absolute += std::fabs(query[d] * key[d]);
      }
      out[w] = dot * factor;
      scale[w] = absolute * factor;
      top = std::max(top, out[w]);
      terms = std::max(terms, scale[w]);
    }
    for (long w = before; w < window; ++w) sum += out[w] = std::exp(out[w] - top);
    const double common = 8 + std::sqrt(double(window - before)) + terms;
    for (long w = 0; w < window; ++w) {
      const double value = w >= before ? out[w] / sum : 0;
      scale[w] = value > 0 ? value * (common + scale[w]) : 0;
      out[w] = value;
    }
  }
}

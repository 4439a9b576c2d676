#include <algorithm>
#include <cmath>

// An absolute error of a score is a relative error of its probability: dim roundings of terms of
// size |q||k| / sqrt(dim), for the score itself and for the maximum. The rest is a softmax.
extern "C" void reference(const double* q, const double* k, double* p, double* p_scale, int heads,
                          int seq, int dim) {
  const double factor = 1 / std::sqrt(double(dim));
  for (long row = 0; row < long(heads) * seq; ++row) {
    const int i = int(row % seq);
    const double* query = q + row * dim;
    const double* keys = k + (row - i) * dim;
    double* out = p + row * seq;
    double* scale = p_scale + row * seq;
    double top = -INFINITY, terms = 0, sum = 0;
    for (int j = 0; j <= i; ++j) {
      double dot = 0, absolute = 0;
      for (int d = 0; d < dim; ++d) {
        const double term = query[d] * keys[long(j) * dim + d];
        dot += term;
        absolute += std::fabs(term);
      }
      out[j] = dot * factor;
      scale[j] = absolute * factor;
      top = std::max(top, out[j]);
      terms = std::max(terms, scale[j]);
    }
    for (int j = 0; j <= i; ++j) sum += out[j] = std::exp(out[j] - top);
    const double common = 8 + std::sqrt(double(i + 1)) + terms;
    for (int j = 0; j < seq; ++j) {
      const double value = j <= i ? out[j] / sum : 0;
      scale[j] = value > 0 ? value * (common + scale[j]) : 0;
      out[j] = value;
    }
  }
}

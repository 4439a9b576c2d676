#include <algorithm>
#include <cmath>
#include <vector>

// A probability has the relative error of native/attention_score: a few roundings, those of the sum
// and of its rescalings, and those of its score and of the maximum. An element of the result adds
// these errors up, each times the size of its value.
extern "C" void reference(const double* q, const double* k, const double* v, double* o,
                          double* o_scale, int heads, int seq, int dim) {
  const double factor = 1 / std::sqrt(double(dim));
  std::vector<double> score(seq), size(seq);
  for (long row = 0; row < long(heads) * seq; ++row) {
    const int i = int(row % seq);
    const double* query = q + row * dim;
    const double* keys = k + (row - i) * dim;
    const double* values = v + (row - i) * dim;
    double top = -INFINITY, terms = 0, sum = 0;
    for (int j = 0; j <= i; ++j) {
      double dot = 0, absolute = 0;
      for (int d = 0; d < dim; ++d) {
        const double term = query[d] * keys[long(j) * dim + d];
        dot += term;
        absolute += std::fabs(term);
      }
      score[j] = dot * factor;
      size[j] = absolute * factor;
      top = std::max(top, score[j]);
      terms = std::max(terms, size[j]);
    }
    for (int j = 0; j <= i; ++j) sum += score[j] = std::exp(score[j] - top);
    const double common = 8 + std::sqrt(double(i + 1)) + terms;
    for (int d = 0; d < dim; ++d) o[row * dim + d] = o_scale[row * dim + d] = 0;
    for (int j = 0; j <= i; ++j) {
      const double p = score[j] / sum, error = p * (common + size[j]);
      for (int d = 0; d < dim; ++d) {
        const double value = values[long(j) * dim + d];
        o[row * dim + d] += p * value;
        o_scale[row * dim + d] += error * std::fabs(value);
      }
    }
  }
}

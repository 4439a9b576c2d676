#include <algorithm>
#include <cmath>

extern "C" void solve(const float* q, const float* k, float* p, int heads, int seq, int dim) {
  const float factor = 1 / std::sqrt(float(dim));
  for (long row = 0; row < long(heads) * seq; ++row) {
    const int i = int(row % seq);
    const float* keys = k + (row - i) * dim;
    float* out = p + row * seq;
    float top = -INFINITY, sum = 0;
    for (int j = 0; j <= i; ++j) {
      float dot = 0;
      for (int d = 0; d < dim; ++d) dot += q[row * dim + d] * keys[long(j) * dim + d];
      out[j] = dot * factor;
      top = std::max(top, out[j]);
    }
    for (int j = 0; j <= i; ++j) sum += out[j] = std::exp(out[j] - top);
    for (int j = 0; j <= i; ++j) out[j] /= sum;
    for (int j = i + 1; j < seq; ++j) out[j] = 0;
  }
}

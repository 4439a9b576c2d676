#include <bit>
#include <cmath>
#include <vector>

// exp by 2^n * p(r), |r| <= ln(2)/2: within 2 units in the last place, and free of branches and
// calls, so that the loops around it become vector code.
static inline float fast_exp(float x) {
  x = x > -87.0f ? x : -87.0f;
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  return p * std::bit_cast<float>((int(n) + 127) << 23);
}

// The keys of a head are transposed once, so that the scores of a query are vector code over the
// positions instead of short reductions over the channels.
extern "C" void solve(const float* q, const float* k, float* p, int heads, int seq, int dim) {
  const float factor = 1 / std::sqrt(float(dim));
  std::vector<float> turned(std::size_t(dim) * seq);
  for (long h = 0; h < heads; ++h) {
    const float* keys = k + h * seq * dim;
    float* channels = turned.data();
    for (long j = 0; j < seq; ++j)
      for (long d = 0; d < dim; ++d) channels[d * seq + j] = keys[j * dim + d];
    for (long i = 0; i < seq; ++i) {
      const float* query = q + (h * seq + i) * dim;
      float* out = p + (h * seq + i) * seq;
      const long count = i + 1;
      for (long j = 0; j < seq; ++j) out[j] = 0;
      for (long d = 0; d < dim; ++d) {
        const float value = query[d] * factor;
#pragma omp simd
        for (long j = 0; j < count; ++j) out[j] += value * channels[d * seq + j];
      }
      float top = out[0], sum = 0;
#pragma omp simd reduction(max : top)
      for (long j = 0; j < count; ++j) top = out[j] > top ? out[j] : top;
#pragma omp simd reduction(+ : sum)
      for (long j = 0; j < count; ++j) {
        out[j] = fast_exp(out[j] - top);
        sum += out[j];
      }
      const float inverse = 1 / sum;
#pragma omp simd
      for (long j = 0; j < count; ++j) out[j] *= inverse;
    }
  }
}

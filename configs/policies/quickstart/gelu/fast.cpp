#include <bit>
#include <cmath>

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

// erf(|z|) = 1 - t * poly(t) * exp(-z^2), t = 1 / (1 + 0.3275911 |z|): wrong by at most 1.5e-7,
// which is below the allowed 6 * 2^-24 of |x| after the factor 1/2.
extern "C" void solve(const float* x, float* y, int n) {
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    const float z = std::fabs(x[i]) * 0.70710678f;
    const float t = 1 / (1 + 0.3275911f * z);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const float erf = std::copysign(1 - p * t * fast_exp(-z * z), x[i]);
    y[i] = 0.5f * x[i] * (1 + erf);
  }
}

// bench: f(x float[8192], y out float[8192], n = 8192) within 1e-6
static inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
  float n = std::nearbyint(x * 1.44269504f);
  float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  int bits = (static_cast<int>(n) + 127) << 23; // 2^n
  float power;
  std::memcpy(&power, &bits, 4);
  return p * power;
}
void f(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = exponential(8 * x[i]);
}

#include <cmath>

namespace {

// 1 + erf cancels for negative x, so the error is relative to x, not to y.
__global__ void gelu(const float* x, double* y, double* y_scale, int n) {
  const long stride = long(gridDim.x) * blockDim.x;
  for (long i = long(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    const double value = x[i];
    y[i] = 0.5 * value * (1 + erf(value * 0.70710678118654752440));
    y_scale[i] = fabs(value);
  }
}

} // namespace

extern "C" void reference(const float* x, double* y, double* y_scale, int n) {
  const int needed = (n - 1) / 256 + 1;
  const int launched = needed < 8192 ? needed : 8192;
  gelu<<<launched, 256>>>(x, y, y_scale, n);
}

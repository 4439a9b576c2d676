#include <cmath>

// The bound is that of reference.cpp. The order of additions differs from the host's, but the
// prefixes do not: each is found, apart from roundings of doubles.
namespace {

// Consecutive elements: their sum, that of their absolute values, and the smallest and the largest
// sum of the first few. The empty prefix counts as one, so that all zeros are no elements.
struct Span {
  double sum, absolute, low, high;
};

__device__ double smaller(double a, double b) {
  return a < b ? a : b;
}
__device__ double larger(double a, double b) {
  return a > b ? a : b;
}

// The elements of a, then those of b.
__device__ Span join(const Span& a, const Span& b) {
  return {a.sum + b.sum, a.absolute + b.absolute, smaller(a.low, a.sum + b.low),
          larger(a.high, a.sum + b.high)};
}

constexpr int kParts = 16;

// One block for 32 results of one slice. A warp walks a sixteenth of the middle axis, a lane in one
// column; then the first warp joins the parts from the top to the bottom.
__global__ void sum_middle(const float* __restrict__ x, double* y, double* y_scale, int mid,
                           int inner) {
  __shared__ Span parts[kParts][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long tiles = (long(inner) - 1) / 32 + 1;
  const long o = blockIdx.x / tiles, i = blockIdx.x % tiles * 32 + lane;
  const long part = (long(mid) - 1) / kParts + 1, begin = warp * part;
  const long end = begin + part < mid ? begin + part : mid;
  Span span = {0, 0, 0, 0};
  if (i < inner) {
#pragma unroll 8
    for (long m = begin; m < end; ++m) {
      const double value = x[(o * mid + m) * inner + i];
      span.sum += value;
      span.absolute += fabs(value);
      span.low = smaller(span.low, span.sum);
      span.high = larger(span.high, span.sum);
    }
  }
  parts[warp][lane] = span;
  __syncthreads();
  if (warp != 0 || i >= inner) return;
  for (int p = 1; p < kParts; ++p) span = join(span, parts[p][lane]);
  y[o * inner + i] = span.sum;
  y_scale[o * inner + i] = span.absolute + sqrt(double(mid)) * larger(span.high, -span.low);
}

} // namespace

extern "C" void reference(const float* x, double* y, double* y_scale, int outer, int mid,
                          int inner) {
  const long tiles = (long(inner) - 1) / 32 + 1;
  sum_middle<<<unsigned(outer * tiles), 32 * kParts>>>(x, y, y_scale, mid, inner);
}

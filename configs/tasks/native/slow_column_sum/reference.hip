// As reference.cu, whose groups of 32 threads need not be a warp.
#include <cmath>

// The bound of row_sum, down the columns. The order of additions differs from the host's, but the
// prefixes do not: each is found, apart from roundings of doubles.
namespace {

// Consecutive elements: their sum, that of their absolute values, and the smallest and the largest
// sum of the first few. The empty prefix counts as one, so that all zeros are no elements.
struct Span {
  double sum, absolute, low, high;
};

__device__ double smaller(double a, double b) { return a < b ? a : b; }
__device__ double larger(double a, double b) { return a > b ? a : b; }

// The elements of a, then those of b.
__device__ Span join(const Span& a, const Span& b) {
  return {a.sum + b.sum, a.absolute + b.absolute, smaller(a.low, a.sum + b.low),
          larger(a.high, a.sum + b.high)};
}

constexpr int kParts = 16;

// One block for 32 columns. A warp walks a sixteenth of the rows, a lane in one column; then the
// first warp joins the parts from the top to the bottom.
__global__ void sum_columns(const float* __restrict__ x, double* y, double* y_scale, int rows,
                            int cols) {
  __shared__ Span parts[kParts][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long j = blockIdx.x * 32L + lane;
  const long part = (long(rows) - 1) / kParts + 1, begin = warp * part;
  const long end = begin + part < rows ? begin + part : rows;
  Span span = {0, 0, 0, 0};
  if (j < cols) {
#pragma unroll 8
    for (long i = begin; i < end; ++i) {
      const double value = x[i * cols + j];
      span.sum += value;
      span.absolute += fabs(value);
      span.low = smaller(span.low, span.sum);
      span.high = larger(span.high, span.sum);
    }
  }
  parts[warp][lane] = span;
  __syncthreads();
  if (warp != 0 || j >= cols) return;
  for (int p = 1; p < kParts; ++p) span = join(span, parts[p][lane]);
  y[j] = span.sum;
  y_scale[j] = span.absolute + sqrt(double(rows)) * larger(span.high, -span.low);
}

} // namespace

extern "C" void reference(const float* x, double* y, double* y_scale, int rows, int cols) {
  sum_columns<<<(cols - 1) / 32 + 1, 32 * kParts>>>(x, y, y_scale, rows, cols);
}

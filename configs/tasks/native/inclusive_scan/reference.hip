// As reference.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
#include <cmath>

// The same bound as in reference.cpp. The order of additions differs from the host's, but the
// prefixes do not: each is found, apart from roundings of doubles.
namespace {

constexpr int kThreads = 128;
constexpr int kEach = 15; // of a thread; odd, so that threads do not meet in a bank
constexpr int kTile = kThreads * kEach;
constexpr int kParts = 7 * kThreads;

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

__device__ Span shift_up(const Span& span, int step) {
  return {__shfl_up(span.sum, step, 32), __shfl_up(span.absolute, step, 32),
          __shfl_up(span.low, step, 32), __shfl_up(span.high, step, 32)};
}

// The join of the spans of all threads before this one. Ends with the block's in total.
__device__ Span block_scan(Span span, Span& total) {
  __shared__ Span warps[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 1; step < 32; step *= 2) {
    const Span before = shift_up(span, step);
    if (lane >= step) span = join(before, span);
  }
  __syncthreads(); // the call before may still be reading
  if (lane == 31) warps[warp] = span;
  __syncthreads();
  total = {0, 0, 0, 0};
  Span before = total;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w == warp) before = total;
    total = join(total, warps[w]);
  }
  span = shift_up(span, 1);
  return lane > 0 ? join(before, span) : before;
}

// Every part's span. Scratch of one call.
__device__ Span totals[kParts];

// The join of the spans of all parts before this block's.
__device__ Span parts_before() {
  Span span = {0, 0, 0, 0}, total;
  for (int p = 0; p < kParts / kThreads; ++p) {
    const unsigned part = threadIdx.x * (kParts / kThreads) + p;
    if (part < blockIdx.x) span = join(span, totals[part]);
  }
  block_scan(span, total);
  return total;
}

// Writes the totals of the parts, or, with them known, the results. A part is a whole number of
// tiles. They pass through shared memory, since a thread needs neighbours, and the global memory
// threads that are neighbours.
template <bool kWrite>
__global__ void __launch_bounds__(kThreads)
    scan_parts(const float* __restrict__ x, double* __restrict__ y, double* __restrict__ y_scale,
               int n, long part_length) {
  __shared__ double values[kTile];
  __shared__ double scales[kWrite ? kTile : 1];
  const long begin = blockIdx.x * part_length;
  const long end = begin + part_length < n ? begin + part_length : n;
  const int mine = threadIdx.x * kEach;
  Span carry = {0, 0, 0, 0};
  if (kWrite) carry = parts_before();
  for (long first = begin; first < end; first += kTile) {
#pragma unroll
    for (int e = threadIdx.x; e < kTile; e += kThreads)
      values[e] = first + e < end ? x[first + e] : 0;
    __syncthreads();
    Span span = {0, 0, 0, 0}, total;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const double value = values[mine + e];
      span.sum += value;
      span.absolute += fabs(value);
      span.low = smaller(span.low, span.sum);
      span.high = larger(span.high, span.sum);
    }
    const Span before = join(carry, block_scan(span, total));
    carry = join(carry, total);
    if (kWrite) {
      // The loop of reference.cpp from here on.
      double sum = before.sum, absolute = before.absolute;
      double largest = larger(before.high, -before.low);
      double count = double(first + mine), root = ceil(sqrt(count));
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const double value = values[mine + e];
        sum += value;
        absolute += fabs(value);
        largest = larger(largest, fabs(sum));
        count += 1;
        if (root * root < count) root += 1;
        values[mine + e] = sum;
        scales[mine + e] = absolute + root * largest;
      }
      __syncthreads();
#pragma unroll
      for (int e = threadIdx.x; e < kTile; e += kThreads) {
        if (first + e >= end) break;
        y[first + e] = values[e];
        y_scale[first + e] = scales[e];
      }
    }
    __syncthreads(); // before the next tile takes the place of this one
  }
  if (!kWrite && threadIdx.x == 0) totals[blockIdx.x] = carry;
}

} // namespace

extern "C" void reference(const float* x, double* y, double* y_scale, int n) {
  const long tiles = (long(n) - 1) / kTile + 1;
  const long part_length = ((tiles - 1) / kParts + 1) * kTile;
  const unsigned parts = unsigned((n - 1) / part_length + 1);
  scan_parts<false><<<parts, kThreads>>>(x, y, y_scale, n, part_length);
  scan_parts<true><<<parts, kThreads>>>(x, y, y_scale, n, part_length);
}

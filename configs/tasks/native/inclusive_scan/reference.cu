#include <cmath>

// The same bound as in reference.cpp. The largest partial sum is exact apart from roundings of
// doubles: a span keeps its smallest and largest prefix, which shift by the sum before the span.
namespace {

constexpr int kThreads = 256;
constexpr int kParts = 1024;

// The empty prefix counts as one, so that all zeros are the empty span.
struct Span {
  double sum, absolute, low, high;
};

__device__ Span join(const Span& a, const Span& b) {
  return {a.sum + b.sum, a.absolute + b.absolute, fmin(a.low, a.sum + b.low),
          fmax(a.high, a.sum + b.high)};
}

__device__ Span single(double x) {
  return {x, fabs(x), fmin(x, 0.0), fmax(x, 0.0)};
}

__device__ Span shift_up(const Span& span, int step) {
  return {__shfl_up_sync(~0u, span.sum, step), __shfl_up_sync(~0u, span.absolute, step),
          __shfl_up_sync(~0u, span.low, step), __shfl_up_sync(~0u, span.high, step)};
}

// Every part's span; after scan_totals, the span of all before it. Scratch of one call.
__device__ Span totals[kParts];

// The join of all spans up to this thread's. Ends with the block's in total.
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
  Span carry = total;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w == warp) carry = total;
    total = join(total, warps[w]);
  }
  return join(carry, span);
}

// Elements of a part: a whole number of tiles.
__host__ __device__ long part_length(int n) {
  const long each = (long(n) - 1) / kParts + 1;
  return ((each - 1) / kThreads + 1) * kThreads;
}

// Writes the totals of the parts, or, with them scanned, the results.
template <bool kWrite>
__global__ void scan_parts(const float* x, double* y, double* y_scale, int n) {
  const long begin = blockIdx.x * part_length(n);
  const long end = begin + part_length(n) < n ? begin + part_length(n) : n;
  Span carry = {0, 0, 0, 0};
  if (kWrite) carry = totals[blockIdx.x];
  for (long first = begin; first < end; first += kThreads) {
    const long i = first + threadIdx.x;
    Span total;
    const Span local = block_scan(i < end ? single(x[i]) : Span{0, 0, 0, 0}, total);
    if (kWrite && i < end) {
      const Span all = join(carry, local);
      y[i] = all.sum;
      y_scale[i] = all.absolute + ceil(sqrt(double(i + 1))) * fmax(all.high, -all.low);
    }
    carry = join(carry, total);
  }
  if (!kWrite && threadIdx.x == 0) totals[blockIdx.x] = carry;
}

// One thread: a thousand steps are quick enough.
__global__ void scan_totals() {
  Span carry = {0, 0, 0, 0};
  for (int part = 0; part < kParts; ++part) {
    const Span own = totals[part];
    totals[part] = carry;
    carry = join(carry, own);
  }
}

} // namespace

extern "C" void reference(const float* x, double* y, double* y_scale, int n) {
  scan_parts<false><<<kParts, kThreads>>>(x, y, y_scale, n);
  scan_totals<<<1, 1>>>();
  scan_parts<true><<<kParts, kThreads>>>(x, y, y_scale, n);
}

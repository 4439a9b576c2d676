// As reference.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
#include <cmath>

// The bound of a sum (see row_sum), divided by the number of elements. The order of additions
// differs from the host's, but the prefixes do not: each is found, apart from roundings of doubles.
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

constexpr int kWarps = 4;
constexpr int kEach = 4; // neighbours of a lane, to share the cost of a warp's scan

__device__ double warp_sum(double value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor(value, step, 32);
  return value;
}

// Of the selected of x[0] to x[count - 1], in every lane of a warp, and how many they are. What is
// not selected, or behind the end, adds 0, which repeats a prefix that there is.
__device__ Span warp_span(const float* __restrict__ x, const int* __restrict__ mask, long count,
                          int& selected) {
  const int lane = threadIdx.x % 32;
  Span span = {0, 0, 0, 0};
  selected = 0;
#pragma unroll 2
  for (long first = 0; first < count; first += 32 * kEach) {
    double prefix[kEach], own = 0;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const long j = first + lane * kEach + e;
      // Both are read whatever the mask says, so that neither waits for the other.
      const float read = j < count ? x[j] : 0;
      const bool use = j < count && mask[j] != 0;
      const double value = use ? read : 0;
      selected += use;
      span.absolute += fabs(value);
      prefix[e] = own += value;
    }
    double reached = own; // with the lanes before
    for (int step = 1; step < 32; step *= 2) {
      const double before = __shfl_up(reached, step, 32);
      if (lane >= step) reached += before;
    }
    const double before = span.sum + (reached - own);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      span.low = smaller(span.low, before + prefix[e]);
      span.high = larger(span.high, before + prefix[e]);
    }
    span.sum += __shfl(reached, 31, 32);
  }
  span.absolute = warp_sum(span.absolute);
  for (int step = 16; step > 0; step /= 2) selected += __shfl_xor(selected, step, 32);
  for (int step = 16; step > 0; step /= 2) {
    span.low = smaller(span.low, __shfl_xor(span.low, step, 32));
    span.high = larger(span.high, __shfl_xor(span.high, step, 32));
  }
  return span;
}

// One block a row; a warp has a quarter.
__global__ void mean(const float* __restrict__ x, const int* __restrict__ mask, double* y,
                     double* y_scale, int cols) {
  __shared__ Span parts[kWarps];
  __shared__ int counts[kWarps];
  const int warp = threadIdx.x / 32;
  const long part = (long(cols) - 1) / kWarps + 1, begin = warp * part;
  const long count = begin + part < cols ? part : cols - begin; // none or less: no elements
  const long first = blockIdx.x * long(cols) + begin;
  int selected;
  const Span span = warp_span(x + first, mask + first, count, selected);
  if (threadIdx.x % 32 == 0) {
    parts[warp] = span;
    counts[warp] = selected;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  Span all = parts[0];
  int chosen = counts[0];
  for (int w = 1; w < kWarps; ++w) {
    all = join(all, parts[w]);
    chosen += counts[w];
  }
  const double divisor = chosen > 0 ? chosen : 1;
  y[blockIdx.x] = all.sum / divisor;
  y_scale[blockIdx.x] =
      (all.absolute + sqrt(double(cols)) * larger(all.high, -all.low)) / divisor;
}

} // namespace

extern "C" void reference(const float* x, const int* mask, double* y, double* y_scale, int rows,
                          int cols) {
  mean<<<rows, 32 * kWarps>>>(x, mask, y, y_scale, cols);
}

// As baseline.cu. Shuffles stay within 32 lanes, whether a wavefront has 32 or 64 of them.
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 4 * kThreads; // elements that a block scans at a time, four a thread
constexpr int kParts = 1024;        // a part per block; all of them run at once

// The sum of each part. A fixed number of parts needs no allocation.
__device__ float totals[kParts];

// Elements of a part: a whole number of tiles, which keeps them aligned for float4.
__host__ __device__ long part_length(int n) {
  const long each = (long(n) - 1) / kParts + 1;
  return ((each - 1) / kTile + 1) * kTile;
}

__device__ float block_sum(float value) {
  __shared__ float warps[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor(value, step, 32);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int warp = 0; warp < kThreads / 32; ++warp) value += warps[warp];
  return value;
}

__device__ float4 load(const float* x, long i, long end) {
  if (i + 4 <= end) return *reinterpret_cast<const float4*>(x + i);
  return {i < end ? x[i] : 0, i + 1 < end ? x[i + 1] : 0, i + 2 < end ? x[i + 2] : 0, 0};
}

__global__ void sum_parts(const float* x, int n) {
  const long begin = blockIdx.x * part_length(n);
  const long end = begin + part_length(n) < n ? begin + part_length(n) : n;
  float sum = 0;
  for (long i = begin + 4 * threadIdx.x; i < end; i += kTile) {
    const float4 v = load(x, i, end);
    sum += (v.x + v.y) + (v.z + v.w);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

__global__ void scan_parts(const float* x, float* y, int n) {
  // Two buffers in turn, so that one barrier a tile is enough.
  __shared__ float warps[2][kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long begin = blockIdx.x * part_length(n);
  const long end = begin + part_length(n) < n ? begin + part_length(n) : n;
  float before = 0;
  for (int part = threadIdx.x; part < int(blockIdx.x); part += kThreads) before += totals[part];
  float carry = block_sum(before);
  int buffer = 0;
  for (long first = begin; first < end; first += kTile, buffer ^= 1) {
    const long i = first + 4 * threadIdx.x;
    float4 v = load(x, i, end);
    v.y += v.x;
    v.z += v.y;
    v.w += v.z;
    float scanned = v.w;
    for (int step = 1; step < 32; step *= 2) {
      const float left = __shfl_up(scanned, step, 32);
      if (lane >= step) scanned += left;
    }
    if (lane == 31) warps[buffer][warp] = scanned;
    // What lies before this thread within the warp; subtracting v.w would cost digits.
    float offset = __shfl_up(scanned, 1, 32);
    if (lane == 0) offset = 0;
    __syncthreads();
    float earlier = 0, total = 0;
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w == warp) earlier = total;
      total += warps[buffer][w];
    }
    offset += carry + earlier;
    carry += total;
    const float4 result = {v.x + offset, v.y + offset, v.z + offset, v.w + offset};
    if (i + 4 <= end) {
      *reinterpret_cast<float4*>(y + i) = result;
    } else {
      if (i < end) y[i] = result.x;
      if (i + 1 < end) y[i + 1] = result.y;
      if (i + 2 < end) y[i + 2] = result.z;
    }
  }
}

} // namespace

extern "C" void solve(const float* x, float* y, int n) {
  sum_parts<<<kParts, kThreads>>>(x, n);
  scan_parts<<<kParts, kThreads>>>(x, y, n);
}

// Kernels with one known flaw each, and kernels without, for gpu_check.sh profile. The name of a
// kernel says what a profiler must find: flaw__KIND__NAME, or clean__LIMIT__NAME.
//   profile_kernels            runs each of them once
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call)                                                                   \
  do {                                                                                \
    cudaError_t what = (call);                                                        \
    if (what != cudaSuccess) {                                                        \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(what));       \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (0)

constexpr int N = 1 << 26; // floats of a buffer: 256 MiB, several times the L2
constexpr int SIDE = 8192; // of a square matrix of N floats

// -- access to global memory --------------------------------------------------------------------

extern "C" __global__ void flaw__uncoalesced_access__strided_load(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 32) y[i] = x[(long long)i * 32 % n] * 2;
}

extern "C" __global__ void flaw__uncoalesced_access__column_store(const float* x, float* y, int side) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  y[(size_t)column * side + row] = x[(size_t)row * side + column];
}

struct particle { float a, b, c, d, e, f, g, h; };
extern "C" __global__ void flaw__uncoalesced_access__array_of_structs(const particle* p, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = p[i].c + 1;
}

// -- shared memory ------------------------------------------------------------------------------

extern "C" __global__ void flaw__bank_conflicts__stride_32(const float* x, float* y) {
  __shared__ float tile[32 * 32];
  int t = threadIdx.x;
  for (int i = t; i < 1024; i += blockDim.x) tile[i] = x[blockIdx.x * 1024 + i];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 256; ++k) sum += tile[(t % 32) * 32 + ((k + t / 32) & 31)];
  y[blockIdx.x * blockDim.x + t] = sum;
}

extern "C" __global__ void flaw__bank_conflicts__column_of_tile(const float* x, float* y) {
  __shared__ float tile[32][32];
  int c = threadIdx.x, r = threadIdx.y;
  tile[r][c] = x[(blockIdx.x * 32 + r) * 32 + c];
  __syncthreads();
  float value = 0;
  for (int k = 0; k < 64; ++k) {
    value += tile[c][(r + k) & 31];
    tile[c][(r + k) & 31] = value;
    __syncwarp();
  }
  y[(blockIdx.x * 32 + r) * 32 + c] = value;
}

// -- divergence ---------------------------------------------------------------------------------

extern "C" __global__ void flaw__divergence__loop_by_thread(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  int steps = (threadIdx.x & 31) == 0 ? 2048 : 16;
  for (int k = 0; k < steps; ++k) v = v * 1.0001f + 0.5f;
  y[i] = v;
}

extern "C" __global__ void flaw__divergence__switch_by_lane(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  for (int k = 0; k < 128; ++k) switch (threadIdx.x & 7) {
      case 0: v = __sinf(v) + v * v; break;
      case 1: v = __cosf(v) - v * 3; break;
      case 2: v = __expf(-v * v) * 2; break;
      case 3: v = sqrtf(fabsf(v)) + 1; break;
      case 4: v = __logf(fabsf(v) + 1) * 5; break;
      case 5: v = rsqrtf(fabsf(v) + 1) + v; break;
      case 6: v = v / (1 + fabsf(v)) - 7; break;
      default: v = tanhf(v) * 0.3f; break;
    }
  y[i] = v;
}

// -- atomics ------------------------------------------------------------------------------------

extern "C" __global__ void flaw__atomics__one_address(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(y + (i & 1), x[i]);
}

extern "C" __global__ void flaw__atomics__histogram(const float* x, unsigned* bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(bins + (__float_as_uint(x[i]) * 2654435761u >> 29), 1u);
}

// -- registers ----------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(1024, 2) flaw__register_spills__too_many_values(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[96];
#pragma unroll
  for (int k = 0; k < 96; ++k) v[k] = x[(i + k * 1024) & (N - 1)];
  for (int step = 0; step < 32; ++step) {
#pragma unroll
    for (int k = 0; k < 96; ++k) v[k] = v[k] * v[(k + 37) % 96] + v[(k + 11) % 96];
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 96; ++k) sum += v[k];
  y[i] = sum;
}

extern "C" __global__ void flaw__register_spills__indexed_array(const float* x, float* y, const int* where) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[64];
  for (int k = 0; k < 64; ++k) v[k] = x[(i + k) & (N - 1)];
  for (int k = 0; k < 512; ++k) {
    int at = (where[k] + (int)v[k & 63]) & 63;
    v[at] = v[(at + k) & 63] * 0.5f + 1;
  }
  y[i] = v[where[0] & 63];
}

// -- double precision ---------------------------------------------------------------------------

extern "C" __global__ void flaw__fp64__double_polynomial(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double a = x[i], b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < 512; ++k) {
    a = a * 0.999 + 0.1;
    b = b * 0.998 + 0.2;
    c = c * 0.997 + 0.3;
    d = d * 0.996 + 0.4;
  }
  y[i] = (float)(a + b + c + d);
}

extern "C" __global__ void flaw__fp64__constants_without_f(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = x[i], b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < 256; ++k) {
    a = a * 0.999 + 0.1;
    b = b * 0.998 + 0.2;
    c = c * 0.997 + 0.3;
    d = d * 0.996 + 0.4;
  }
  y[i] = a + b + c + d;
}

// -- launches -----------------------------------------------------------------------------------

extern "C" __global__ void flaw__occupancy__shared_memory(const float* x, float* y) {
  extern __shared__ float big[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  big[threadIdx.x] = x[i];
  __syncthreads();
  float v = big[(threadIdx.x + 1) % blockDim.x];
  for (int k = 0; k < 64; ++k) v = v * 1.001f + big[(threadIdx.x + k) % blockDim.x];
  y[i] = v;
}

extern "C" __global__ void __launch_bounds__(256, 1) flaw__occupancy__registers(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[160];
#pragma unroll
  for (int k = 0; k < 160; ++k) v[k] = x[(i + k * 4096) & (N - 1)];
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int k = 0; k < 160; ++k) v[k] = v[k] * v[(k + 53) % 160] + 1;
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 160; ++k) sum += v[k];
  y[i] = sum;
}

extern "C" __global__ void flaw__tail__four_blocks(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void flaw__tail__wave_and_a_bit(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  for (int k = 0; k < 4096; ++k) v = v * 1.0001f + 0.5f;
  y[i] = v;
}

// -- units and overlap --------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(256) flaw__no_tensor_cores__product_in_registers(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][132], bs[16][132];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float sum[8][8] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int i = threadIdx.x; i < 16 * 128; i += 256) {
      as[i / 128][i % 128] = a[(size_t)(k0 + i / 128) * n + blockIdx.y * 128 + i % 128];
      bs[i / 128][i % 128] = b[(size_t)(k0 + i / 128) * n + blockIdx.x * 128 + i % 128];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float u[8], w[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) u[i] = as[k][ty * 8 + i], w[i] = bs[k][tx + 16 * i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += u[i] * w[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) c[(size_t)(blockIdx.y * 128 + ty * 8 + i) * n + blockIdx.x * 128 + tx + 16 * j] = sum[i][j];
}

extern "C" __global__ void flaw__no_overlap__load_wait_compute(const float* x, float* y, int steps) {
  __shared__ float tile[1024];
  float sum = 0;
  for (int s = 0; s < steps; ++s) {
    tile[threadIdx.x] = x[((size_t)(blockIdx.x * steps + s) * 1024 + threadIdx.x) & (N - 1)];
    __syncthreads();
    if (threadIdx.x < 32)
      for (int k = 0; k < 32; ++k) sum += tile[threadIdx.x + 32 * k];
    __syncthreads();
  }
  y[blockIdx.x * 1024 + threadIdx.x] = sum;
}

extern "C" __global__ void flaw__latency__chase(const int* next, float* y, int steps) {
  // Each warp reads 128 bytes in a row, and only then knows where the next ones lie.
  int at = (blockIdx.x * blockDim.x + threadIdx.x) & ~31, lane = threadIdx.x & 31;
  for (int k = 0; k < steps; ++k) at = __shfl_sync(~0u, next[at + lane], 0) & (N - 1) & ~31;
  y[blockIdx.x * blockDim.x + threadIdx.x] = (float)at;
}

// -- kernels that nothing is wrong with ---------------------------------------------------------

extern "C" __global__ void clean__memory_bandwidth__add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}

extern "C" __global__ void clean__memory_bandwidth__copy_16_bytes(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

extern "C" __global__ void clean__memory_bandwidth__gelu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));
}

extern "C" __global__ void clean__memory_bandwidth__scale_by_two(const float* x, const float* b, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + b[i & 4095];
}

extern "C" __global__ void clean__memory_bandwidth__row_sum(const float* x, float* y, int columns) {
  float sum = 0;
  const float4* row = (const float4*)(x + (size_t)blockIdx.x * columns);
  for (int i = threadIdx.x; i < columns / 4; i += blockDim.x) {
    float4 v = row[i];
    sum += v.x + v.y + v.z + v.w;
  }
  __shared__ float part[8];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 8; ++i) sum += part[i];
    y[blockIdx.x] = sum;
  }
}

extern "C" __global__ void clean__memory_bandwidth__transpose(const float* x, float* y, int side) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(size_t)(r + k) * side + c];
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) y[(size_t)(r + k) * side + c] = tile[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void clean__memory_bandwidth__sum_with_one_atomic(const float4* x, float* y, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 v = x[i];
    sum += v.x + v.y + v.z + v.w;
  }
  for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(~0u, sum, o);
  __shared__ float part[8];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 8; ++i) sum += part[i];
    atomicAdd(y, sum);
  }
}

extern "C" __global__ void clean__compute__special_functions(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = x[i], b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < 64; ++k) {
    a = __sinf(a);
    b = __sinf(b);
    c = __sinf(c);
    d = __sinf(d);
  }
  y[i] = a + b + c + d;
}

extern "C" __global__ void clean__compute__integer_hash(const unsigned* x, unsigned* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = x[i], b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < 256; ++k) {
    a = (a ^ (a >> 15)) * 2246822519u;
    b = (b ^ (b >> 15)) * 2246822519u;
    c = (c ^ (c >> 15)) * 2246822519u;
    d = (d ^ (d >> 15)) * 2246822519u;
  }
  y[i] = a ^ b ^ c ^ d;
}

extern "C" __global__ void clean__memory_bandwidth__shared_stencil(const float* x, float* y) {
  __shared__ float tile[258];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  tile[t + 1] = x[i];
  if (t == 0) tile[0] = i > 0 ? x[i - 1] : 0;
  if (t == 255) tile[257] = i + 1 < N ? x[i + 1] : 0;
  __syncthreads();
  y[i] = 0.25f * tile[t] + 0.5f * tile[t + 1] + 0.25f * tile[t + 2];
}

// -- running them -------------------------------------------------------------------------------

__global__ void fill(float* x, int* next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned h = (unsigned)i * 2654435761u;
  x[i] = (float)(h >> 8) * (2.0f / (1 << 24)) - 1;
  next[i] = (int)((h * 40503u + 12345u) & (unsigned)(n - 1));
}

int main() {
  float *x, *y;
  int* next;
  CHECK(cudaMalloc(&x, sizeof(float) * N));
  CHECK(cudaMalloc(&y, sizeof(float) * N));
  CHECK(cudaMalloc(&next, sizeof(int) * N));
  CHECK(cudaMemset(y, 0, sizeof(float) * N));
  fill<<<N / 256, 256>>>(x, next, N);
  cudaDeviceProp gpu;
  CHECK(cudaGetDeviceProperties(&gpu, 0));
  int sms = gpu.multiProcessorCount;
  flaw__uncoalesced_access__strided_load<<<N / 32 / 256, 256>>>(x, y, N);
  flaw__uncoalesced_access__column_store<<<dim3(SIDE / 256, SIDE), 256>>>(x, y, SIDE);
  flaw__uncoalesced_access__array_of_structs<<<N / 8 / 256, 256>>>((const particle*)x, y, N / 8);
  flaw__bank_conflicts__stride_32<<<4096, 256>>>(x, y);
  flaw__bank_conflicts__column_of_tile<<<4096, dim3(32, 32)>>>(x, y);
  flaw__divergence__loop_by_thread<<<16384, 256>>>(x, y);
  flaw__divergence__switch_by_lane<<<16384, 256>>>(x, y);
  flaw__atomics__one_address<<<4096, 256>>>(x, y);
  flaw__atomics__histogram<<<16384, 256>>>(x, (unsigned*)y);
  flaw__register_spills__too_many_values<<<sms * 8, 1024>>>(x, y);
  flaw__register_spills__indexed_array<<<sms * 16, 256>>>(x, y, next);
  flaw__fp64__double_polynomial<<<16384, 256>>>(x, y);
  flaw__fp64__constants_without_f<<<16384, 256>>>(x, y);
  CHECK(cudaFuncSetAttribute(flaw__occupancy__shared_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  flaw__occupancy__shared_memory<<<sms * 64, 128, 200 << 10>>>(x, y);
  flaw__occupancy__registers<<<sms * 16, 256>>>(x, y);
  flaw__tail__four_blocks<<<4, 256>>>(x, y, N / 16);
  int fit = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, flaw__tail__wave_and_a_bit, 256, 0));
  flaw__tail__wave_and_a_bit<<<sms * fit + sms * fit / 10, 256>>>(x, y);
  flaw__no_tensor_cores__product_in_registers<<<dim3(32, 32), 256>>>(x, x + N / 2, y, 4096);
  flaw__no_overlap__load_wait_compute<<<sms * 16, 1024>>>(x, y, 64);
  flaw__latency__chase<<<sms * 4, 256>>>(next, y, 128);
  clean__memory_bandwidth__add<<<N / 256, 256>>>(x, y, N);
  clean__memory_bandwidth__copy_16_bytes<<<N / 4 / 256, 256>>>((const float4*)x, (float4*)y, N / 4);
  clean__memory_bandwidth__gelu<<<N / 256, 256>>>(x, y, N);
  clean__memory_bandwidth__scale_by_two<<<N / 256, 256>>>(x, x, y, N);
  clean__memory_bandwidth__row_sum<<<SIDE, 256>>>(x, y, SIDE);
  clean__memory_bandwidth__transpose<<<dim3(SIDE / 32, SIDE / 32), dim3(32, 8)>>>(x, y, SIDE);
  clean__memory_bandwidth__sum_with_one_atomic<<<sms * 8 * 8, 256>>>((const float4*)x, y, N / 4);
  clean__compute__special_functions<<<sms * 128, 256>>>(x, y);
  clean__compute__integer_hash<<<sms * 128, 256>>>((const unsigned*)x, (unsigned*)y);
  clean__memory_bandwidth__shared_stencil<<<N / 256, 256>>>(x, y);
  CHECK(cudaDeviceSynchronize());
  std::printf("%d multiprocessors, all kernels ran\n", sms);
  return 0;
}

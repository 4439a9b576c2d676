// Kernels with one planted fault of memory each, and the same without, for gpu_check.sh profile.
//   sanitizer_kernels NAME...     runs these; bad__TOOL__NAME has the fault, good__TOOL__NAME has not
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

constexpr int N = 1024; // floats of x and y

// -- memcheck -----------------------------------------------------------------------------------

template <int bound> __device__ void write_to(float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < bound) y[i] = 1;
}
extern "C" __global__ void bad__memcheck__write_past_end(const float*, float* y) { write_to<N + 64>(y); }
extern "C" __global__ void good__memcheck__write_past_end(const float*, float* y) { write_to<N>(y); }

extern "C" __global__ void bad__memcheck__read_past_end(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) y[i] = x[i] + x[i + 1];
}
extern "C" __global__ void good__memcheck__read_past_end(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) y[i] = x[i] + (i + 1 < N ? x[i + 1] : 0);
}

extern "C" __global__ void bad__memcheck__misaligned(const float* x, float* y) {
  int i = threadIdx.x;
  if (i < 16) ((float4*)y)[i] = *(const float4*)(x + 4 * i + 1);
}
extern "C" __global__ void good__memcheck__misaligned(const float* x, float* y) {
  int i = threadIdx.x;
  if (i < 16) ((float4*)y)[i] = *(const float4*)(x + 4 * i);
}

extern "C" __global__ void bad__memcheck__null(const float* x, float* y) {
  // An address that the compiler does not know: with a null that it sees it leaves the write out.
  float* nowhere = (float*)((size_t)__float_as_uint(x[0]) * (size_t)y);
  nowhere[threadIdx.x] = 1;
}
extern "C" __global__ void good__memcheck__null(const float* x, float* y) {
  float* somewhere = (float*)((size_t)__float_as_uint(x[0] + 1) / 0x3f800000u * (size_t)y);
  somewhere[threadIdx.x] = 1;
}

extern "C" __global__ void bad__memcheck__shared_past_end(const float* x, float* y) {
  extern __shared__ float tile[];
  tile[threadIdx.x + (x[0] < 1e30f ? 65536 : 0)] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void good__memcheck__shared_past_end(const float* x, float* y) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}

// -- racecheck ----------------------------------------------------------------------------------

template <bool waits> __device__ void reverse(const float* x, float* y) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  if (waits) __syncthreads();
  y[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void bad__racecheck__no_barrier(const float* x, float* y) { reverse<false>(x, y); }
extern "C" __global__ void good__racecheck__no_barrier(const float* x, float* y) { reverse<true>(x, y); }

template <bool waits> __device__ void tiles(const float* x, float* y) {
  __shared__ float tile[256];
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    tile[threadIdx.x] = x[k * 256 + threadIdx.x];
    __syncthreads();
    sum += tile[(threadIdx.x + 64) & 255];
    if (waits) __syncthreads();
  }
  y[threadIdx.x] = sum;
}
extern "C" __global__ void bad__racecheck__next_tile(const float* x, float* y) { tiles<false>(x, y); }
extern "C" __global__ void good__racecheck__next_tile(const float* x, float* y) { tiles<true>(x, y); }

template <bool alone> __device__ void flag(const float* x, float* y) {
  __shared__ float found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  if (alone ? threadIdx.x == 7 : threadIdx.x % 64 == 7) found = x[threadIdx.x] + threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = found;
}
extern "C" __global__ void bad__racecheck__two_writers(const float* x, float* y) { flag<false>(x, y); }
extern "C" __global__ void good__racecheck__two_writers(const float* x, float* y) { flag<true>(x, y); }

// -- initcheck: z is allocated and never written before ------------------------------------------

extern "C" __global__ void bad__initcheck__adds_to_unset(const float* x, float* z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) z[i] += x[i];
}
extern "C" __global__ void good__initcheck__adds_to_unset(const float* x, float* z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) z[i] = x[i];
}

template <int written> __device__ void partly(float* z) {
  int t = threadIdx.x;
  if (t < written) z[t] = (float)t;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 256; ++k) sum += z[k];
  z[512 + t] = sum;
}
extern "C" __global__ void bad__initcheck__partly_written(const float*, float* z) { partly<255>(z); }
extern "C" __global__ void good__initcheck__partly_written(const float*, float* z) { partly<256>(z); }

// -- synccheck ----------------------------------------------------------------------------------

template <bool all> __device__ void barrier(const float* x, float* y) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  if (all || threadIdx.x % 32 < 16) __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void bad__synccheck__in_a_branch(const float* x, float* y) { barrier<false>(x, y); }
extern "C" __global__ void good__synccheck__in_a_branch(const float* x, float* y) { barrier<true>(x, y); }

template <bool all> __device__ void rounds(const float* x, float* y) {
  __shared__ float tile[256];
  // Only the threads know how often: an unrolled loop lets the others end first.
  int count = (all || threadIdx.x % 32 < 16 ? 3 : 2) + (int)x[0];
  float sum = 0;
  for (int k = 0; k < count; ++k) {
    tile[threadIdx.x] = x[k * 256 + threadIdx.x];
    __syncthreads();
    sum += tile[threadIdx.x ^ 1];
    __syncthreads();
  }
  y[threadIdx.x] = sum;
}
extern "C" __global__ void bad__synccheck__loop_by_thread(const float* x, float* y) { rounds<false>(x, y); }
extern "C" __global__ void good__synccheck__loop_by_thread(const float* x, float* y) { rounds<true>(x, y); }

// -- running them -------------------------------------------------------------------------------

using kernel = void (*)(const float*, float*);
struct row {
  const char* name;
  kernel run;
};
#define PAIR(name) {"bad__" #name, bad__##name}, {"good__" #name, good__##name}
static const row rows[] = {
    PAIR(memcheck__write_past_end), PAIR(memcheck__read_past_end),  PAIR(memcheck__misaligned),
    PAIR(memcheck__null),           PAIR(memcheck__shared_past_end), PAIR(racecheck__no_barrier),
    PAIR(racecheck__next_tile),     PAIR(racecheck__two_writers),   PAIR(initcheck__adds_to_unset),
    PAIR(initcheck__partly_written), PAIR(synccheck__in_a_branch),  PAIR(synccheck__loop_by_thread)};

int main(int argc, char** argv) {
  if (argc == 1)
    for (const row& x : rows) std::printf("%s\n", x.name);
  static float zeros[N];
  for (int i = 1; i < argc; ++i)
    for (const row& x : rows) {
      if (std::strcmp(x.name, argv[i]) != 0) continue;
      float *in = nullptr, *out = nullptr; // out stays as it was allocated: initcheck counts that
      cudaMalloc(&in, sizeof zeros);
      cudaMalloc(&out, sizeof zeros);
      cudaMemcpy(in, zeros, sizeof zeros, cudaMemcpyHostToDevice);
      bool one_block = std::strstr(x.name, "check__w") == nullptr && std::strstr(x.name, "check__read") == nullptr &&
                       std::strstr(x.name, "check__adds") == nullptr;
      x.run<<<one_block ? 1 : 8, 256, 1024>>>(in, out);
      std::printf("%s: %s\n", x.name, cudaGetErrorString(cudaDeviceSynchronize()));
      cudaFree(in);
      cudaFree(out);
    }
  return 0;
}

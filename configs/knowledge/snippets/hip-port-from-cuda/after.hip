#if defined(__HIP_PLATFORM_AMD__)
constexpr int lanes = 64;
using lane_mask = unsigned long long;
__device__ lane_mask ballot(bool x) { return __ballot(x); }
__device__ float down(float v, int d) { return __shfl_down(v, d); }
__device__ int bits(lane_mask m) { return __popcll(m); }
#else
constexpr int lanes = 32;
using lane_mask = unsigned;
__device__ lane_mask ballot(bool x) { return __ballot_sync(0xffffffffu, x); }
__device__ float down(float v, int d) { return __shfl_down_sync(0xffffffffu, v, d); }
__device__ int bits(lane_mask m) { return __popc(m); }
#endif
__device__ float total(float v) { // in lane 0
  for (int d = lanes / 2; d > 0; d /= 2) v += down(v, d);
  return v;
}

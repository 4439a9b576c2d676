#pragma once

// Names that device code in HIP uses and CUDA does not have, or no longer: lanes are named without a
// mask, and votes are 64 bits wide.

#ifndef HIP_DYNAMIC_SHARED
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z
#endif

#ifndef __shfl
#define __shfl(...) __shfl_sync(0xffffffff, __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(0xffffffff, __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(0xffffffff, __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(0xffffffff, __VA_ARGS__)
#endif

// Those that are active vote, as on AMD GPUs.
#ifndef __ballot
#define __ballot(x) (static_cast<unsigned long long>(__ballot_sync(__activemask(), x)))
#define __any(x) __any_sync(__activemask(), x)
#define __all(x) __all_sync(__activemask(), x)
#endif

#ifndef __lane_id
#define __lane_id()                                                                                \
  ((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % warpSize)
#endif

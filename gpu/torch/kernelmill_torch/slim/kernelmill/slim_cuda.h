// What extensions usually need of ATen/cuda/CUDAContext.h; see slim_torch.h.
#pragma once

#include <cuda_runtime_api.h>

#include <ATen/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#ifndef AT_CUDA_CHECK
#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
#endif

namespace at::cuda {

using namespace c10::cuda;

cudaDeviceProp* getCurrentDeviceProperties();
int warp_size();
cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device);

inline bool is_available() {
  return c10::cuda::device_count() > 0;
}

} // namespace at::cuda

// What extensions usually need of ATen/cuda/CUDAContext.h and c10/cuda/CUDAGuard.h; see
// slim_torch.h.
#pragma once

#include <cuda_runtime_api.h>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#ifndef AT_CUDA_CHECK
#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
#endif

// Classes of torch's names in a namespace of ours: another source of the same library may use torch's.
namespace kernelmill_slim {

class CUDAGuard {
public:
  explicit CUDAGuard(c10::DeviceIndex index)
      : before_(index < 0 ? c10::cuda::current_device() : c10::cuda::ExchangeDevice(index)) {}
  explicit CUDAGuard(c10::Device device) : CUDAGuard(index_of(device)) {}
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() { c10::cuda::MaybeSetDevice(before_); }

  void set_index(c10::DeviceIndex index) { c10::cuda::set_device(index); }
  void set_device(c10::Device device) { c10::cuda::set_device(index_of(device)); }

private:
  static c10::DeviceIndex index_of(c10::Device device) {
    TORCH_CHECK(device.is_cuda(), "a CUDA guard needs a CUDA device, not ", device);
    return device.index();
  }

  c10::DeviceIndex before_;
};

class OptionalCUDAGuard {
public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<c10::Device> device) {
    if (device) guard_.emplace(*device);
  }
  explicit OptionalCUDAGuard(std::optional<c10::DeviceIndex> index) {
    if (index) guard_.emplace(*index);
  }

private:
  std::optional<CUDAGuard> guard_;
};

} // namespace kernelmill_slim

namespace c10::cuda {
using kernelmill_slim::CUDAGuard;
using kernelmill_slim::OptionalCUDAGuard;
} // namespace c10::cuda

namespace at {

inline std::optional<Device> device_of(const Tensor& x) {
  if (!x.defined()) return std::nullopt;
  return x.device();
}

namespace cuda {

using namespace c10::cuda;

cudaDeviceProp* getCurrentDeviceProperties();
int warp_size();
cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device);

inline bool is_available() {
  return c10::cuda::device_count() > 0;
}

} // namespace cuda
} // namespace at

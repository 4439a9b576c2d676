#pragma once

// HIP on NVIDIA GPUs: AMD's own header layer (hip/nvidia_detail), which turns each name of HIP into
// CUDA's, as nvcc needs it. That layer is of CUDA 11 and speaks of what later toolkits took away;
// this puts it back as far as the layer compiles, and gives wavefronts their old names.
// Kernelmill includes it before every candidate in HIP.

#include <cuda.h>
#include <cuda_runtime.h>

// -- what CUDA 12 and 13 took away ------------------------------------------------------------------

#if CUDART_VERSION >= 12000

template <class T, int dim, cudaTextureReadMode mode>
struct kernelmill_texture;

template <class... Ts>
cudaError_t kernelmill_no_texture(const Ts&...) {
  return cudaErrorNotSupported;
}

#define texture kernelmill_texture
#define cudaBindTexture kernelmill_no_texture
#define cudaBindTexture2D kernelmill_no_texture
#define cudaBindTextureToArray kernelmill_no_texture
#define cudaUnbindTexture kernelmill_no_texture
#define cudaGetTextureAlignmentOffset kernelmill_no_texture

#endif

#if CUDART_VERSION >= 13000

struct kernelmill_device_properties : cudaDeviceProp {
  int clockRate;       // kHz
  int memoryClockRate; // kHz
  int computeMode;
  int cooperativeMultiDeviceLaunch;
  int kernelExecTimeoutEnabled;
};

inline cudaError_t cudaGetDeviceProperties(kernelmill_device_properties* x, int device) {
  cudaError_t result = cudaGetDeviceProperties(static_cast<cudaDeviceProp*>(x), device);
  if (result != cudaSuccess) return result;
  x->cooperativeMultiDeviceLaunch = 0;
  result = cudaDeviceGetAttribute(&x->clockRate, cudaDevAttrClockRate, device);
  if (result == cudaSuccess)
    result = cudaDeviceGetAttribute(&x->memoryClockRate, cudaDevAttrMemoryClockRate, device);
  if (result == cudaSuccess)
    result = cudaDeviceGetAttribute(&x->computeMode, cudaDevAttrComputeMode, device);
  if (result == cudaSuccess)
    result = cudaDeviceGetAttribute(&x->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout, device);
  return result;
}

inline cudaMemLocation kernelmill_location(int device) {
  return device < 0 ? cudaMemLocation{cudaMemLocationTypeHost, 0}
                    : cudaMemLocation{cudaMemLocationTypeDevice, device};
}

inline cudaError_t cudaMemAdvise(const void* x, size_t bytes, cudaMemoryAdvise advice, int device) {
  return cudaMemAdvise(x, bytes, advice, kernelmill_location(device));
}

inline cudaError_t cudaMemPrefetchAsync(const void* x, size_t bytes, int device, cudaStream_t stream) {
  return cudaMemPrefetchAsync(x, bytes, kernelmill_location(device), 0, stream);
}

inline CUresult cuCtxCreate(CUcontext* x, unsigned flags, CUdevice device) {
  return cuCtxCreate(x, nullptr, flags, device);
}

inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, size_t count) {
  return cudaGraphRemoveDependencies(graph, from, to, nullptr, count);
}

inline cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                     size_t* count) {
  return cudaGraphGetEdges(graph, from, to, nullptr, count);
}

inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* all,
                                                size_t* count) {
  return cudaGraphNodeGetDependencies(node, all, nullptr, count);
}

inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* all,
                                                  size_t* count) {
  return cudaGraphNodeGetDependentNodes(node, all, nullptr, count);
}

inline cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                               unsigned long long* id, cudaGraph_t* graph,
                                               const cudaGraphNode_t** dependencies, size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}

inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* all,
                                                       size_t count, unsigned flags) {
  return cudaStreamUpdateCaptureDependencies(stream, all, nullptr, count, flags);
}

template <class... Ts>
cudaError_t kernelmill_no_several_devices(const Ts&...) {
  return cudaErrorNotSupported;
}

#define cudaDeviceProp kernelmill_device_properties
#define cudaDevAttrCooperativeMultiDeviceLaunch cudaDevAttrReserved96
#define cudaLaunchCooperativeKernelMultiDevice kernelmill_no_several_devices

#endif

#include <hip/hip_runtime.h>

#undef texture
#undef cudaBindTexture
#undef cudaBindTexture2D
#undef cudaBindTextureToArray
#undef cudaUnbindTexture
#undef cudaGetTextureAlignmentOffset
#undef cudaDeviceProp
#undef cudaDevAttrCooperativeMultiDeviceLaunch
#undef cudaLaunchCooperativeKernelMultiDevice

#include "kernelmill_hip_device.h"

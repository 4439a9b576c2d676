#pragma once

// The CUDA driver, opened at run time: one binary serves machines with and without a GPU. The
// declarations are those few of the driver's C interface that Kernelmill uses, written down here so
// that building needs no CUDA headers; the ABI is fixed by the driver's versioned symbol names.

#include <cstddef>
#include <cstdint>
#include <string>

#include "messages/error.hpp"

namespace kernelmill::cuda {

using result = int; ///< CUresult; 0 is success
using device_pointer = uint64_t;
using memory_handle = uint64_t; ///< CUmemGenericAllocationHandle

struct context_object;
struct module_object;
struct function_object;
struct event_object;
struct stream_object;
using context = context_object*;
using module = module_object*;
using function = function_object*;
using event = event_object*;
using stream = stream_object*;

struct memory_location {
  int type = 1; ///< CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;
};

struct allocation_properties {
  int type = 1;         ///< CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 1; ///< CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
  memory_location location;
  void* windows_metadata = nullptr;
  unsigned char flags[8] = {};
};
static_assert(sizeof(allocation_properties) == 32);

struct access_description {
  memory_location location;
  int flags = 3; ///< 1: read, 3: read and write
};

/// CUipcMemHandle: another process opens an allocation by it.
struct ipc_handle {
  char bytes[64];
};

inline constexpr int posix_descriptor = 1;
inline constexpr unsigned ipc_lazy_peer_access = 1;
inline constexpr int access_read = 1;
inline constexpr int access_read_write = 3;
inline constexpr unsigned granularity_minimum = 0;
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned host_mapped = 2;            ///< CU_MEMHOSTALLOC_DEVICEMAP
inline constexpr unsigned wait_at_least = 0;          ///< CU_STREAM_WAIT_VALUE_GEQ
inline constexpr unsigned event_without_time = 2;     ///< CU_EVENT_DISABLE_TIMING
inline constexpr result not_supported = 801;          ///< CUDA_ERROR_NOT_SUPPORTED
inline constexpr result already_registered = 712;     ///< CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
inline constexpr int function_max_dynamic_shared = 8; ///< CU_FUNC_ATTRIBUTE_...

// CUdevice_attribute
inline constexpr int attribute_multiprocessors = 16;
inline constexpr int attribute_clock_khz = 13;
inline constexpr int attribute_l2_bytes = 38;
inline constexpr int attribute_memory_clock_khz = 36;
inline constexpr int attribute_memory_bus_bits = 37;
inline constexpr int attribute_major = 75;
inline constexpr int attribute_minor = 76;

// clang-format off
#define KERNELMILL_CUDA_FUNCTIONS(X)                                                               \
  X(init, "cuInit", (unsigned))                                                                    \
  X(driver_version, "cuDriverGetVersion", (int*))                                                  \
  X(device_name, "cuDeviceGetName", (char*, int, int))                                             \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, int))                                    \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (context*, int))                                   \
  X(set_current, "cuCtxSetCurrent", (context))                                                     \
  X(synchronize, "cuCtxSynchronize", ())                                                           \
  X(reset_persisting_l2, "cuCtxResetPersistingL2Cache", ())                                        \
  X(granularity, "cuMemGetAllocationGranularity",                                                  \
    (size_t*, const allocation_properties*, unsigned))                                             \
  X(memory_create, "cuMemCreate",                                                                  \
    (memory_handle*, size_t, const allocation_properties*, unsigned long long))                    \
  X(memory_release, "cuMemRelease", (memory_handle))                                               \
  X(memory_export, "cuMemExportToShareableHandle",                                                 \
    (void*, memory_handle, int, unsigned long long))                                               \
  X(memory_import, "cuMemImportFromShareableHandle", (memory_handle*, void*, int))                 \
  X(address_reserve, "cuMemAddressReserve",                                                        \
    (device_pointer*, size_t, size_t, device_pointer, unsigned long long))                         \
  X(address_free, "cuMemAddressFree", (device_pointer, size_t))                                    \
  X(memory_map, "cuMemMap", (device_pointer, size_t, size_t, memory_handle, unsigned long long))   \
  X(memory_unmap, "cuMemUnmap", (device_pointer, size_t))                                          \
  X(set_access, "cuMemSetAccess", (device_pointer, size_t, const access_description*, size_t))     \
  X(allocate, "cuMemAlloc_v2", (device_pointer*, size_t))                                          \
  X(free, "cuMemFree_v2", (device_pointer))                                                        \
  X(memory_info, "cuMemGetInfo_v2", (size_t*, size_t*))                                            \
  X(copy_to_device, "cuMemcpyHtoD_v2", (device_pointer, const void*, size_t))                      \
  X(copy_to_host, "cuMemcpyDtoH_v2", (void*, device_pointer, size_t))                              \
  X(fill_words, "cuMemsetD32Async", (device_pointer, unsigned, size_t, void*))                     \
  X(address_range, "cuMemGetAddressRange_v2", (device_pointer*, size_t*, device_pointer))          \
  X(ipc_name, "cuIpcGetMemHandle", (ipc_handle*, device_pointer))                                  \
  X(ipc_open, "cuIpcOpenMemHandle_v2", (device_pointer*, ipc_handle, unsigned))                    \
  X(ipc_close, "cuIpcCloseMemHandle", (device_pointer))                                            \
  X(module_load, "cuModuleLoadData", (module*, const void*))                                       \
  X(module_unload, "cuModuleUnload", (module))                                                     \
  X(module_function, "cuModuleGetFunction", (function*, module, const char*))                      \
  X(launch, "cuLaunchKernel",                                                                      \
    (function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,        \
     void**, void**))                                                                              \
  X(function_set, "cuFuncSetAttribute", (function, int, int))                                      \
  X(stream_create, "cuStreamCreate", (stream*, unsigned))                                          \
  X(stream_synchronize, "cuStreamSynchronize", (stream))                                           \
  X(wait_value, "cuStreamWaitValue32_v2", (stream, device_pointer, uint32_t, unsigned))            \
  X(write_value, "cuStreamWriteValue32_v2", (stream, device_pointer, uint32_t, unsigned))          \
  X(host_allocate, "cuMemHostAlloc", (void**, size_t, unsigned))                                   \
  X(host_register, "cuMemHostRegister_v2", (void*, size_t, unsigned))                              \
  X(host_unregister, "cuMemHostUnregister", (void*))                                               \
  X(host_pointer, "cuMemHostGetDevicePointer_v2", (device_pointer*, void*, unsigned))              \
  X(event_create, "cuEventCreate", (event*, unsigned))                                             \
  X(event_record, "cuEventRecord", (event, stream))                                                \
  X(event_elapsed, "cuEventElapsedTime", (float*, event, event))                                   \
  X(error_name, "cuGetErrorName", (result, const char**))
// clang-format on

/// The driver's functions. Thread safety: as CUDA's.
struct driver {
#define KERNELMILL_DECLARE(name, symbol, parameters) result(*name) parameters = nullptr;
  KERNELMILL_CUDA_FUNCTIONS(KERNELMILL_DECLARE)
#undef KERNELMILL_DECLARE

  /// "cuFuncGetParamInfo": offset and size of a kernel's parameter. Null before CUDA 12.4.
  result (*function_parameter)(function, size_t, size_t*, size_t*) = nullptr;

  /// "cuCtxRecordEvent" and "cuCtxWaitEvent": all that a context was given before, and all that it
  /// is given later. Null before CUDA 12.5.
  result (*context_record)(context, event) = nullptr;
  result (*context_wait)(context, event) = nullptr;

  std::string path; ///< of the library that was opened

  /// "CUDA_ERROR_ILLEGAL_ADDRESS".
  std::string name_of(result x) const;
};

/// Opens libcuda.so.1 once; it is never closed. Fails with "cuda_missing" (infrastructure).
expected<const driver*> open_driver();

} // namespace kernelmill::cuda

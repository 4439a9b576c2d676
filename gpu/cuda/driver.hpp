#pragma once

// The interface to a GPU, opened at run time: one binary serves machines with and without one. It
// is a table of functions with two fillings, CUDA's driver and AMD's HIP, whose functions have the
// same form; hip_driver.cpp has those that differ. Only what Kernelmill uses is declared, so that
// building needs no headers of either. CUDA's ABI is fixed by versioned symbol names, HIP's by its
// library's.

#include <cstddef>
#include <cstdint>
#include <string>

#include "messages/error.hpp"

namespace kernelmill::cuda {

/// Which filling; "hip" is libamdhip64, for AMD GPUs.
enum class gpu_api : unsigned char { cuda, hip };

using result = int; ///< CUresult or hipError_t; 0 is success
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

// CUdevice_attribute. HIP's numbers are others: hip_driver.cpp.
inline constexpr int attribute_multiprocessors = 16;
inline constexpr int attribute_clock_khz = 13;
inline constexpr int attribute_l2_bytes = 38;
inline constexpr int attribute_memory_clock_khz = 36;
inline constexpr int attribute_memory_bus_bits = 37;
inline constexpr int attribute_major = 75;
inline constexpr int attribute_minor = 76;

// X(member, name in CUDA, name in HIP or "" where hip_driver.cpp fills it, parameters)
// clang-format off
#define KERNELMILL_GPU_FUNCTIONS(X)                                                                \
  X(init, "cuInit", "hipInit", (unsigned))                                                         \
  X(driver_version, "cuDriverGetVersion", "hipDriverGetVersion", (int*))                           \
  X(device_name, "cuDeviceGetName", "hipDeviceGetName", (char*, int, int))                         \
  X(device_attribute, "cuDeviceGetAttribute", "", (int*, int, int))                                \
  X(primary_retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", (context*, int))      \
  X(set_current, "cuCtxSetCurrent", "hipCtxSetCurrent", (context))                                 \
  X(synchronize, "cuCtxSynchronize", "hipDeviceSynchronize", ())                                   \
  X(reset_persisting_l2, "cuCtxResetPersistingL2Cache", "", ())                                    \
  X(granularity, "cuMemGetAllocationGranularity", "hipMemGetAllocationGranularity",                \
    (size_t*, const allocation_properties*, unsigned))                                             \
  X(memory_create, "cuMemCreate", "hipMemCreate",                                                  \
    (memory_handle*, size_t, const allocation_properties*, unsigned long long))                    \
  X(memory_release, "cuMemRelease", "hipMemRelease", (memory_handle))                              \
  X(memory_export, "cuMemExportToShareableHandle", "hipMemExportToShareableHandle",                \
    (void*, memory_handle, int, unsigned long long))                                               \
  X(memory_import, "cuMemImportFromShareableHandle", "", (memory_handle*, void*, int))             \
  X(address_reserve, "cuMemAddressReserve", "hipMemAddressReserve",                                \
    (device_pointer*, size_t, size_t, device_pointer, unsigned long long))                         \
  X(address_free, "cuMemAddressFree", "hipMemAddressFree", (device_pointer, size_t))               \
  X(memory_map, "cuMemMap", "hipMemMap",                                                           \
    (device_pointer, size_t, size_t, memory_handle, unsigned long long))                           \
  X(memory_unmap, "cuMemUnmap", "hipMemUnmap", (device_pointer, size_t))                           \
  X(set_access, "cuMemSetAccess", "hipMemSetAccess",                                               \
    (device_pointer, size_t, const access_description*, size_t))                                   \
  X(allocate, "cuMemAlloc_v2", "hipMalloc", (device_pointer*, size_t))                             \
  X(free, "cuMemFree_v2", "hipFree", (device_pointer))                                             \
  X(memory_info, "cuMemGetInfo_v2", "hipMemGetInfo", (size_t*, size_t*))                           \
  X(copy_to_device, "cuMemcpyHtoD_v2", "hipMemcpyHtoD", (device_pointer, const void*, size_t))     \
  X(copy_to_host, "cuMemcpyDtoH_v2", "hipMemcpyDtoH", (void*, device_pointer, size_t))             \
  X(fill_words, "cuMemsetD32Async", "hipMemsetD32Async",                                           \
    (device_pointer, unsigned, size_t, void*))                                                     \
  X(address_range, "cuMemGetAddressRange_v2", "hipMemGetAddressRange",                             \
    (device_pointer*, size_t*, device_pointer))                                                    \
  X(ipc_name, "cuIpcGetMemHandle", "hipIpcGetMemHandle", (ipc_handle*, device_pointer))            \
  X(ipc_open, "cuIpcOpenMemHandle_v2", "hipIpcOpenMemHandle",                                      \
    (device_pointer*, ipc_handle, unsigned))                                                       \
  X(ipc_close, "cuIpcCloseMemHandle", "hipIpcCloseMemHandle", (device_pointer))                    \
  X(module_load, "cuModuleLoadData", "hipModuleLoadData", (module*, const void*))                  \
  X(module_unload, "cuModuleUnload", "hipModuleUnload", (module))                                  \
  X(module_function, "cuModuleGetFunction", "hipModuleGetFunction",                                \
    (function*, module, const char*))                                                              \
  X(launch, "cuLaunchKernel", "hipModuleLaunchKernel",                                             \
    (function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,        \
     void**, void**))                                                                              \
  X(function_set, "cuFuncSetAttribute", "", (function, int, int))                                  \
  X(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags", (stream*, unsigned))              \
  X(stream_synchronize, "cuStreamSynchronize", "hipStreamSynchronize", (stream))                   \
  X(wait_value, "cuStreamWaitValue32_v2", "", (stream, device_pointer, uint32_t, unsigned))        \
  X(write_value, "cuStreamWriteValue32_v2", "hipStreamWriteValue32",                               \
    (stream, device_pointer, uint32_t, unsigned))                                                  \
  X(host_allocate, "cuMemHostAlloc", "hipHostMalloc", (void**, size_t, unsigned))                  \
  X(host_register, "cuMemHostRegister_v2", "hipHostRegister", (void*, size_t, unsigned))           \
  X(host_unregister, "cuMemHostUnregister", "hipHostUnregister", (void*))                          \
  X(host_pointer, "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer",                       \
    (device_pointer*, void*, unsigned))                                                            \
  X(event_create, "cuEventCreate", "hipEventCreateWithFlags", (event*, unsigned))                  \
  X(event_record, "cuEventRecord", "hipEventRecord", (event, stream))                              \
  X(event_elapsed, "cuEventElapsedTime", "hipEventElapsedTime", (float*, event, event))            \
  X(error_name, "cuGetErrorName", "", (result, const char**))
// clang-format on

/// The functions of one of the two. Thread safety: as CUDA's.
struct driver {
#define KERNELMILL_DECLARE(name, cuda, hip, parameters) result(*name) parameters = nullptr;
  KERNELMILL_GPU_FUNCTIONS(KERNELMILL_DECLARE)
#undef KERNELMILL_DECLARE

  /// "cuFuncGetParamInfo": offset and size of a kernel's parameter. Null before CUDA 12.4, and in
  /// HIP.
  result (*function_parameter)(function, size_t, size_t*, size_t*) = nullptr;

  /// "cuCtxRecordEvent" and "cuCtxWaitEvent": all that a context was given before, and all that it
  /// is given later. Null before CUDA 12.5, and in HIP.
  result (*context_record)(context, event) = nullptr;
  result (*context_wait)(context, event) = nullptr;

  gpu_api api = gpu_api::cuda;
  std::string path; ///< of the library that was opened

  /// "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress".
  std::string name_of(result x) const;
};

/// Opens libcuda.so.1 or libamdhip64.so once; it is never closed. Fails with "cuda_missing" or
/// "hip_missing" (infrastructure).
expected<const driver*> open_driver(gpu_api api = gpu_api::cuda);

/// libamdhip64 of ROCm, whose handle stays open; null where there is none.
void* open_hip_library();

/// Fills in what HIP has in another form. Returns the name of a function that the library lacks;
/// empty: none. Of one library in a process.
const char* fill_hip_driver(driver& into, void* library);

} // namespace kernelmill::cuda

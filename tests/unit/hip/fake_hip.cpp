// A libamdhip64.so that has no GPU: memory is the host's, allocations that are exported are memory
// files, and a launch runs one of two kernels that are written down here. It counts its calls. The
// forms of its functions are those of AMD's header hip_runtime_api.h.

#include "tests/unit/hip/fake_hip.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr int invalid_value = 1;
constexpr int not_found = 500;
constexpr int first_imports_by_value = 70'100'000;

struct state {
  std::map<std::string, int> calls;
  int version = 70'200'000;
  int launch_fault = 0;
  int blocked = 0;
  int clock = 0;
};

state& all() {
  static state x;
  return x;
}

void note(const char* name) {
  ++all().calls[name];
}

struct memory {
  int file;
};

struct kernel {
  const char* name;
  void (*run)(void** arguments, size_t thread);
};

// y[i] = 2 * x[i] of kernel(const float* x, float* y, int n).
void twice(void** arguments, size_t i) {
  if (i >= static_cast<size_t>(*static_cast<int*>(arguments[2]))) return;
  (*static_cast<float**>(arguments[1]))[i] = 2 * (*static_cast<const float**>(arguments[0]))[i];
}

kernel kernels[] = {{"twice", twice}};

} // namespace

#define FAKE(name, ...) extern "C" int name(__VA_ARGS__)

extern "C" {

int fake_hip_calls(const char* name) {
  return all().calls[name];
}

void fake_hip_pretend(int version) {
  all().version = version;
}

void fake_hip_fail_launch(int code) {
  all().launch_fault = code;
}

int fake_hip_blocked() {
  return all().blocked;
}

const char* hipGetErrorName(int x) {
  if (x == invalid_value) return "hipErrorInvalidValue";
  if (x == not_found) return "hipErrorNotFound";
  return x == 719 ? "hipErrorLaunchFailure" : "hipErrorUnknown";
}
}

FAKE(hipInit, unsigned) {
  note("hipInit");
  return 0;
}

FAKE(hipDriverGetVersion, int* x) {
  *x = all().version;
  return 0;
}

FAKE(hipRuntimeGetVersion, int* x) {
  *x = all().version;
  return 0;
}

FAKE(hipDeviceGetName, char* into, int size, int) {
  std::strncpy(into, "AMD Instinct of a test", static_cast<size_t>(size));
  return 0;
}

FAKE(hipDeviceGetAttribute, int* into, int which, int) {
  static const std::map<int, int> known{{63, 304},  {5, 2'100'000}, {19, 4 << 20}, {60, 1'300'000},
                                        {59, 8192}, {23, 9},        {61, 4}};
  auto found = known.find(which);
  if (found == known.end()) return invalid_value;
  *into = found->second;
  return 0;
}

FAKE(hipDevicePrimaryCtxRetain, void** into, int) {
  static int context;
  *into = &context;
  return 0;
}

FAKE(hipCtxSetCurrent, void*) {
  return 0;
}

FAKE(hipDeviceSynchronize, void) {
  note("hipDeviceSynchronize");
  return 0;
}

FAKE(hipMemGetAllocationGranularity, size_t* into, const void*, unsigned) {
  *into = 2 << 20;
  return 0;
}

// type, requestedHandleType, location.type: a pinned allocation that is exported as a descriptor.
FAKE(hipMemCreate, memory** into, size_t bytes, const int* how, unsigned long long) {
  note("hipMemCreate");
  if (how[0] != 1 || how[1] != 1 || how[2] != 1 || bytes % (2 << 20) != 0) return invalid_value;
  int file = ::memfd_create("fake-hip", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return invalid_value;
  *into = new memory{file};
  return 0;
}

FAKE(hipMemRelease, memory* x) {
  note("hipMemRelease");
  ::close(x->file);
  delete x;
  return 0;
}

FAKE(hipMemExportToShareableHandle, void* into, memory* x, int type, unsigned long long) {
  if (type != 1) return invalid_value;
  *static_cast<int*>(into) = ::dup(x->file);
  return 0;
}

FAKE(hipMemImportFromShareableHandle, memory** into, void* from, int type) {
  note("hipMemImportFromShareableHandle");
  if (type != 1) return invalid_value;
  bool by_value = all().version >= first_imports_by_value;
  int file =
      by_value ? static_cast<int>(reinterpret_cast<intptr_t>(from)) : *static_cast<int*>(from);
  int own = ::dup(file);
  if (own < 0) return invalid_value;
  *into = new memory{own};
  return 0;
}

FAKE(hipMemAddressReserve, void** into, size_t bytes, size_t, void*, unsigned long long) {
  *into = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return *into == MAP_FAILED ? invalid_value : 0;
}

FAKE(hipMemAddressFree, void* x, size_t bytes) {
  return ::munmap(x, bytes) == 0 ? 0 : invalid_value;
}

FAKE(hipMemMap, void* at, size_t bytes, size_t offset, memory* x, unsigned long long) {
  auto* made =
      ::mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, x->file, static_cast<off_t>(offset));
  return made == at ? 0 : invalid_value;
}

FAKE(hipMemUnmap, void* at, size_t bytes) {
  auto* made =
      ::mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return made == at ? 0 : invalid_value;
}

// location.type, location.id, flags.
FAKE(hipMemSetAccess, void* at, size_t bytes, const int* how, size_t count) {
  if (count != 1 || how[0] != 1) return invalid_value;
  int protection = how[2] == 3 ? PROT_READ | PROT_WRITE : PROT_READ;
  return ::mprotect(at, bytes, protection) == 0 ? 0 : invalid_value;
}

FAKE(hipMalloc, void** into, size_t bytes) {
  *into = std::malloc(bytes);
  return 0;
}

FAKE(hipFree, void* x) {
  std::free(x);
  return 0;
}

FAKE(hipMemGetInfo, size_t* free, size_t* total) {
  *free = *total = size_t{1} << 30;
  return 0;
}

FAKE(hipMemcpyHtoD, void* into, const void* from, size_t bytes) {
  std::memcpy(into, from, bytes);
  return 0;
}

FAKE(hipMemcpyDtoH, void* into, const void* from, size_t bytes) {
  std::memcpy(into, from, bytes);
  return 0;
}

FAKE(hipMemsetD32Async, uint32_t* into, int value, size_t count, void*) {
  for (size_t i = 0; i < count; ++i) into[i] = static_cast<uint32_t>(value);
  return 0;
}

FAKE(hipMemGetAddressRange, void**, size_t*, void*) {
  return invalid_value;
}

struct fake_ipc_handle {
  char bytes[64];
};

FAKE(hipIpcGetMemHandle, fake_ipc_handle*, void*) {
  return invalid_value;
}

FAKE(hipIpcOpenMemHandle, void**, fake_ipc_handle, unsigned) {
  return invalid_value;
}

FAKE(hipIpcCloseMemHandle, void*) {
  return invalid_value;
}

FAKE(hipModuleLoadData, void** into, const void* image) {
  note("hipModuleLoadData");
  if (std::strncmp(static_cast<const char*>(image), "code object", 11) != 0) return invalid_value;
  *into = kernels;
  return 0;
}

FAKE(hipModuleUnload, void*) {
  note("hipModuleUnload");
  return 0;
}

FAKE(hipModuleGetFunction, kernel** into, void*, const char* name) {
  for (auto& x : kernels)
    if (std::strcmp(x.name, name) == 0) {
      *into = &x;
      return 0;
    }
  return not_found;
}

FAKE(hipModuleLaunchKernel, kernel* what, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned, void*, void** arguments, void**) {
  note("hipModuleLaunchKernel");
  if (int fault = all().launch_fault; fault != 0) {
    all().launch_fault = 0;
    return fault;
  }
  for (size_t i = 0; i < size_t{gx} * gy * gz * bx * by * bz; ++i) what->run(arguments, i);
  ++all().clock;
  return 0;
}

FAKE(hipStreamCreateWithFlags, void** into, unsigned flags) {
  static int stream;
  *into = &stream;
  return flags == 1 ? 0 : invalid_value;
}

FAKE(hipStreamSynchronize, void*) {
  return 0;
}

FAKE(hipStreamWaitValue32, void*, void* at, uint32_t value, unsigned flags, uint32_t mask) {
  note("hipStreamWaitValue32");
  if (flags != 0 || mask != ~uint32_t{0}) return invalid_value;
  if (*static_cast<uint32_t*>(at) < value) ++all().blocked;
  return 0;
}

FAKE(hipStreamWriteValue32, void*, void* at, uint32_t value, unsigned) {
  *static_cast<uint32_t*>(at) = value;
  return 0;
}

FAKE(hipHostMalloc, void** into, size_t bytes, unsigned) {
  *into = std::malloc(bytes);
  return 0;
}

FAKE(hipHostRegister, void*, size_t, unsigned) {
  return 712; // hipErrorHostMemoryAlreadyRegistered, which is no reason to end
}

FAKE(hipHostUnregister, void*) {
  return 0;
}

FAKE(hipHostGetDevicePointer, void** into, void* host, unsigned) {
  *into = host;
  return 0;
}

FAKE(hipEventCreateWithFlags, int** into, unsigned) {
  *into = new int{0}; // a process has two or three, and keeps them
  return 0;
}

FAKE(hipEventRecord, int* event, void* stream) {
  note(stream == nullptr ? "hipEventRecord on the default stream" : "hipEventRecord");
  *event = all().clock;
  return 0;
}

FAKE(hipEventElapsedTime, float* into, int* first, int* last) {
  *into = static_cast<float>(*last - *first);
  return 0;
}

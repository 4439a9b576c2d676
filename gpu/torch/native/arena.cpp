// Memory of a GPU that two processes share. Contents are in memory that the referee makes with the
// driver's virtual-memory interface, exported as a descriptor, imported behind the walls. What
// calls return lies in allocations of the process behind them, which names them for the referee to
// open. The context is the primary one, which is torch's own.

#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "gpu/cuda/call_fence.hpp"
#include "gpu/cuda/driver.hpp"

namespace {

using namespace kernelmill;

thread_local char problem[256];

const cuda::driver* driver() {
  static const cuda::driver* found = [] {
    auto opened = cuda::open_driver();
    if (!opened) std::snprintf(problem, sizeof problem, "%s", opened.error().message.c_str());
    return opened ? *opened : nullptr;
  }();
  return found;
}

bool check(const char* what, int code) {
  if (code != 0)
    std::snprintf(problem, sizeof problem, "%s: %s", what, driver()->name_of(code).c_str());
  return code == 0;
}

bool enter_primary_context() {
  cuda::context context = nullptr;
  return driver() != nullptr && check("start the driver", driver()->init(0)) &&
         check("take the context", driver()->primary_retain(&context, 0)) &&
         check("use the context", driver()->set_current(context));
}

// Maps a handle, which is then no longer needed.
void* map(cuda::memory_handle handle, size_t bytes) {
  cuda::device_pointer at = 0;
  const cuda::access_description access;
  bool ok = check("reserve addresses", driver()->address_reserve(&at, bytes, 0, 0, 0)) &&
            check("map a buffer", driver()->memory_map(at, bytes, 0, handle, 0)) &&
            check("open a buffer", driver()->set_access(at, bytes, &access, 1));
  (void)driver()->memory_release(handle);
  return ok ? reinterpret_cast<void*>(at) : nullptr; // NOLINT(performance-no-int-to-ptr)
}

} // namespace

extern "C" {

/// Why the latest function of this file failed.
const char* km_gpu_problem() {
  return problem;
}

/// Makes at least `bytes` of memory and a descriptor of it. Returns null when it cannot; `capacity`
/// is what it became, in whole units of the driver.
void* km_gpu_create(size_t bytes, size_t* capacity, int* fd) {
  const cuda::allocation_properties how;
  size_t unit = 0;
  cuda::memory_handle handle = 0;
  if (!enter_primary_context() ||
      !check("learn the unit of memory",
             driver()->granularity(&unit, &how, cuda::granularity_minimum)))
    return nullptr;
  *capacity = (bytes + unit - 1) / unit * unit;
  if (!check("allocate a buffer", driver()->memory_create(&handle, *capacity, &how, 0)))
    return nullptr;
  if (!check("export a buffer", driver()->memory_export(fd, handle, cuda::posix_descriptor, 0))) {
    (void)driver()->memory_release(handle);
    return nullptr;
  }
  return map(handle, *capacity);
}

/// Maps what a descriptor names and closes it. Null when it cannot.
void* km_gpu_import(int fd, size_t capacity) {
  cuda::memory_handle handle = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes the descriptor in a pointer
  auto* name = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  bool ok =
      enter_primary_context() &&
      check("import a buffer", driver()->memory_import(&handle, name, cuda::posix_descriptor));
  ::close(fd);
  return ok ? map(handle, capacity) : nullptr;
}

/// Free and total bytes of the GPU.
int km_gpu_memory(size_t* free_bytes, size_t* total_bytes) {
  return enter_primary_context() &&
                 check("ask for memory", driver()->memory_info(free_bytes, total_bytes))
             ? 0
             : -1;
}

/// Takes back what anybody pinned in the second-level cache; cards without that feature have
/// nothing to take back.
void km_gpu_unpin() {
  if (enter_primary_context()) (void)driver()->reset_persisting_l2();
}

/// Where the allocation begins that holds an address of this process, its bytes, and a name (64
/// bytes) by which another process opens it. -1 for what cannot be opened: made by other functions
/// than cudaMalloc, or no memory of a GPU.
int km_gpu_name(uint64_t address, uint64_t* base, size_t* bytes, char* name) {
  cuda::ipc_handle handle;
  if (!enter_primary_context() ||
      !check("find an allocation", driver()->address_range(base, bytes, address)) ||
      !check("name an allocation", driver()->ipc_name(&handle, *base)))
    return -1;
  std::memcpy(name, handle.bytes, sizeof handle.bytes);
  return 0;
}

/// Maps what another process named, and says how large it is. Null when it cannot.
void* km_gpu_open(const char* name, size_t* bytes) {
  cuda::ipc_handle handle;
  std::memcpy(handle.bytes, name, sizeof handle.bytes);
  cuda::device_pointer at = 0;
  cuda::device_pointer base = 0;
  if (!enter_primary_context() ||
      !check("open an allocation", driver()->ipc_open(&at, handle, cuda::ipc_lazy_peer_access)))
    return nullptr;
  if (!check("measure an allocation", driver()->address_range(&base, bytes, at)) || base != at) {
    (void)driver()->ipc_close(at);
    return nullptr;
  }
  return reinterpret_cast<void*>(at); // NOLINT(performance-no-int-to-ptr)
}

/// Unmaps what km_gpu_open() mapped. REQUIRES: nobody uses it any more.
void km_gpu_close(void* at) {
  (void)driver()->ipc_close(reinterpret_cast<cuda::device_pointer>(at));
}

/// Shows the GPU a page of host memory; where it lies for the GPU, or 0 when it cannot.
uint64_t km_gpu_show(void* page, size_t bytes) {
  cuda::device_pointer at = 0;
  bool ok = enter_primary_context() &&
            check("register a page", driver()->host_register(page, bytes, cuda::host_mapped)) &&
            check("find a page", driver()->host_pointer(&at, page, 0));
  return ok ? at : 0;
}

/// Takes back what km_gpu_show() did.
void km_gpu_hide(void* page) {
  if (driver() != nullptr) (void)driver()->host_unregister(page);
}

/// Work that the GPU is given from now on, on any stream, begins when all is over that it was given
/// before. Returns the driver's error, 0 is none: then nothing is kept apart.
int km_gpu_fence() {
  if (driver() == nullptr) return 0;
  static cuda::call_fence fence{*driver()};
  return fence.set();
}

void km_gpu_unmap(void* at, size_t capacity) {
  auto address = reinterpret_cast<cuda::device_pointer>(at);
  (void)driver()->memory_unmap(address, capacity);
  (void)driver()->address_free(address, capacity);
}

} // extern "C"

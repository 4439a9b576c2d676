// Memory of a GPU that two processes share: made by the referee with the driver's virtual-memory
// interface, exported as a descriptor, imported behind the walls. The context is the primary one,
// which is torch's own.

#include <cstdio>

#include <unistd.h>

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

void km_gpu_unmap(void* at, size_t capacity) {
  auto address = reinterpret_cast<cuda::device_pointer>(at);
  (void)driver()->memory_unmap(address, capacity);
  (void)driver()->address_free(address, capacity);
}

} // extern "C"

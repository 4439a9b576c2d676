#include "gpu/candidate/gpu_memory.hpp"

#include <cstdio>

#include <unistd.h>

#include "gpu/cuda/driver.hpp"

namespace kernelmill {

bool gpu_memory::check(const char* what, int code) {
  if (code == 0) return true;
  std::snprintf(problem_, sizeof problem_, "%s (%s)", what, cuda_->name_of(code).c_str());
  return false;
}

bool gpu_memory::open(cuda::gpu_api api) {
  auto opened = cuda::open_driver(api);
  if (!opened) {
    std::snprintf(problem_, sizeof problem_, "use the GPU: %s", opened.error().message.c_str());
    return false;
  }
  cuda_ = *opened;
  cuda::context context = nullptr;
  // The primary context: the one that a candidate's own CUDA runtime uses.
  return check("start the driver", cuda_->init(0)) &&
         check("make a context", cuda_->primary_retain(&context, 0)) &&
         check("use a context", cuda_->set_current(context));
}

void* gpu_memory::map(int descriptor, size_t size, bool writable) {
  cuda::allocation_properties like;
  size_t unit = 0;
  cuda::memory_handle handle = 0;
  cuda::device_pointer room = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes the descriptor in a pointer
  auto* name = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  bool ok =
      check("learn the unit of memory", cuda_->granularity(&unit, &like, 0)) &&
      check("import a buffer", cuda_->memory_import(&handle, name, cuda::posix_descriptor)) &&
      check("reserve addresses", cuda_->address_reserve(&room, size + 2 * unit, unit, 0, 0)) &&
      check("map a buffer", cuda_->memory_map(room + unit, size, 0, handle, 0));
  ::close(descriptor);
  if (!ok) return nullptr;
  cuda::access_description access;
  access.flags = writable ? cuda::access_read_write : cuda::access_read;
  int code = cuda_->set_access(room + unit, size, &access, 1);
  // Some drivers map memory for writing or not at all; then the referee's look at the inputs
  // decides.
  if (code != 0 && !writable) {
    access.flags = cuda::access_read_write;
    code = cuda_->set_access(room + unit, size, &access, 1);
  }
  if (!check("open a buffer", code)) return nullptr;
  return reinterpret_cast<void*>(room + unit);
}

int gpu_memory::synchronize() {
  int code = cuda_->synchronize();
  check("finish a call", code);
  return code;
}

} // namespace kernelmill

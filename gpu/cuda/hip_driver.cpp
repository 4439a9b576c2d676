// What HIP has in another form than CUDA's driver. The rest of the table is HIP's own functions: it
// gives them CUDA's parameters and numbers, so structures, flags and errors are the same.

#include <string>

#include <dlfcn.h>

#include "gpu/cuda/driver.hpp"

namespace kernelmill::cuda {

namespace {

// From ROCm 7.1 on a descriptor is taken by its value, as in CUDA; before, by its address.
constexpr int imports_by_value = 7 * 10'000'000 + 1 * 100'000;

// Of the one library that a process opens.
struct hip_functions {
  result (*attribute)(int*, int, int) = nullptr;
  result (*version)(int*) = nullptr;
  result (*import)(memory_handle*, void*, int) = nullptr;
  result (*wait)(stream, device_pointer, uint32_t, unsigned, uint32_t) = nullptr;
  const char* (*name)(result) = nullptr;
} hip;

struct attribute_number {
  int cuda;
  int hip; ///< hipDeviceAttribute_t
};

constexpr attribute_number attribute_numbers[] = {{attribute_multiprocessors, 63},
                                                  {attribute_clock_khz, 5},
                                                  {attribute_l2_bytes, 19},
                                                  {attribute_memory_clock_khz, 60},
                                                  {attribute_memory_bus_bits, 59},
                                                  {attribute_major, 23},
                                                  {attribute_minor, 61}};

result attribute(int* value, int which, int device) {
  for (const auto& x : attribute_numbers)
    if (x.cuda == which) return hip.attribute(value, x.hip, device);
  return not_supported;
}

// AMD's caches keep nothing on request.
result reset_persisting_l2() {
  return not_supported;
}

result import(memory_handle* into, void* descriptor, int type) {
  int version = 0;
  if (result code = hip.version(&version); code != 0) return code;
  int number = static_cast<int>(reinterpret_cast<intptr_t>(descriptor));
  return hip.import(into, version >= imports_by_value ? descriptor : &number, type);
}

// A kernel may use all of a block's memory without asking.
result function_set(function, int, int) {
  return not_supported;
}

result wait_value(stream on, device_pointer at, uint32_t value, unsigned flags) {
  return hip.wait(on, at, value, flags, ~uint32_t{0});
}

result error_name(result x, const char** into) {
  *into = hip.name(x);
  return 0;
}

} // namespace

void* open_hip_library() {
  // The name alone finds what the loader knows; ROCm often lies where it does not look.
  for (const char* folder : {"", "/opt/rocm/lib/"})
    for (const char* name :
         {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"})
      if (void* x = ::dlopen((std::string{folder} + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return x;
  return nullptr;
}

const char* fill_hip_driver(driver& into, void* library) {
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
    if (function == nullptr) missing = symbol;
  };
  find(hip.attribute, "hipDeviceGetAttribute");
  find(hip.version, "hipRuntimeGetVersion");
  find(hip.import, "hipMemImportFromShareableHandle");
  find(hip.wait, "hipStreamWaitValue32");
  find(hip.name, "hipGetErrorName");
  into.device_attribute = attribute;
  into.reset_persisting_l2 = reset_persisting_l2;
  into.memory_import = import;
  into.function_set = function_set;
  into.wait_value = wait_value;
  into.error_name = error_name;
  return missing;
}

} // namespace kernelmill::cuda

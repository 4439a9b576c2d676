#include "gpu/cuda/driver.hpp"

#include <dlfcn.h>
#include <link.h>

namespace kernelmill::cuda {

namespace {

expected<driver> load() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return infrastructure_error(
        "cuda_missing", std::string{"failed to open the CUDA driver: "} + ::dlerror(),
        "install the NVIDIA driver, or judge on the CPU: --backend cpu, in a "
        "run evaluation.backend=cpu");
  driver result;
  link_map* where = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &where) == 0 && where != nullptr)
    result.path = where->l_name;
#define KERNELMILL_LOAD(name, symbol, parameters)                                                  \
  result.name = reinterpret_cast<decltype(result.name)>(::dlsym(library, symbol));                 \
  if (result.name == nullptr)                                                                      \
    return infrastructure_error(                                                                   \
        "cuda_missing", "failed to use the CUDA driver " + result.path + ": it has no " symbol,    \
        "install a driver for CUDA 12 or later");
  KERNELMILL_CUDA_FUNCTIONS(KERNELMILL_LOAD)
#undef KERNELMILL_LOAD
  result.function_parameter =
      reinterpret_cast<decltype(result.function_parameter)>(::dlsym(library, "cuFuncGetParamInfo"));
  result.context_record =
      reinterpret_cast<decltype(result.context_record)>(::dlsym(library, "cuCtxRecordEvent"));
  result.context_wait =
      reinterpret_cast<decltype(result.context_wait)>(::dlsym(library, "cuCtxWaitEvent"));
  return result;
}

} // namespace

std::string driver::name_of(result x) const {
  const char* text = nullptr;
  if (error_name(x, &text) != 0 || text == nullptr) return "CUDA error " + std::to_string(x);
  return text;
}

expected<const driver*> open_driver() {
  static const expected<driver> opened = load();
  KM_TRY(opened);
  return &*opened;
}

} // namespace kernelmill::cuda

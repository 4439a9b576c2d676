#include "gpu/cuda/driver.hpp"

#include <dlfcn.h>
#include <link.h>

namespace kernelmill::cuda {

namespace {

std::string path_of(void* library) {
  link_map* where = nullptr;
  bool known = ::dlinfo(library, RTLD_DI_LINKMAP, &where) == 0 && where != nullptr;
  return known ? where->l_name : std::string{};
}

template <class Function>
bool find(Function*& into, void* library, const char* symbol) {
  into = reinterpret_cast<Function*>(::dlsym(library, symbol));
  return into != nullptr;
}

expected<driver> load_cuda() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return infrastructure_error(
        "cuda_missing", std::string{"failed to open the CUDA driver: "} + ::dlerror(),
        "install the NVIDIA driver, or judge on the CPU: --backend cpu, in a "
        "run evaluation.backend=cpu");
  driver result;
  result.path = path_of(library);
  const char* missing = nullptr;
#define KERNELMILL_LOAD(name, cuda, hip, parameters)                                               \
  if (!find(result.name, library, cuda)) missing = cuda;
  KERNELMILL_GPU_FUNCTIONS(KERNELMILL_LOAD)
#undef KERNELMILL_LOAD
  if (missing != nullptr)
    return infrastructure_error(
        "cuda_missing", "failed to use the CUDA driver " + result.path + ": it has no " + missing,
        "install a driver for CUDA 12 or later");
  find(result.function_parameter, library, "cuFuncGetParamInfo");
  find(result.context_record, library, "cuCtxRecordEvent");
  find(result.context_wait, library, "cuCtxWaitEvent");
  return result;
}

expected<driver> load_hip() {
  void* library = open_hip_library();
  if (library == nullptr)
    return infrastructure_error(
        "hip_missing",
        "failed to open HIP: libamdhip64.so is neither on the loader's path nor in /opt/rocm/lib",
        "install ROCm's HIP runtime, or judge on the CPU: --backend cpu");
  driver result;
  result.api = gpu_api::hip;
  result.path = path_of(library);
  const char* missing = fill_hip_driver(result, library);
#define KERNELMILL_LOAD(name, cuda, hip, parameters)                                               \
  if (*(hip) != '\0' && !find(result.name, library, hip)) missing = hip;
  KERNELMILL_GPU_FUNCTIONS(KERNELMILL_LOAD)
#undef KERNELMILL_LOAD
  if (missing != nullptr)
    return infrastructure_error("hip_missing",
                                "failed to use HIP of " + result.path + ": it has no " + missing,
                                "install ROCm 5.1 or later");
  return result;
}

} // namespace

std::string driver::name_of(result x) const {
  const char* text = nullptr;
  if (error_name(x, &text) == 0 && text != nullptr) return text;
  return (api == gpu_api::cuda ? "CUDA error " : "HIP error ") + std::to_string(x);
}

expected<const driver*> open_driver(gpu_api api) {
  if (api == gpu_api::hip) {
    static const expected<driver> opened = load_hip();
    KM_TRY(opened);
    return &*opened;
  }
  static const expected<driver> opened = load_cuda();
  KM_TRY(opened);
  return &*opened;
}

} // namespace kernelmill::cuda

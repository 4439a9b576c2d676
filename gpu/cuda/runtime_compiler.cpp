#include "gpu/cuda/runtime_compiler.hpp"

#include <dlfcn.h>

#include "gpu/cuda/symbols.hpp"

namespace kernelmill::cuda {

namespace {

struct program_object;
using program = program_object*;

// NVRTC and hipRTC have the same functions, but for names.
struct compiler_library {
  int (*version)(int*, int*) = nullptr;
  int (*create)(program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(program*) = nullptr;
  int (*compile)(program, int, const char* const*) = nullptr;
  int (*log_size)(program, size_t*) = nullptr;
  int (*log)(program, char*) = nullptr;
  int (*code_size)(program, size_t*) = nullptr;
  int (*code)(program, char*) = nullptr;
};

// The name alone finds what the loader knows; toolkits often lie where it does not look.
void* open_library(std::initializer_list<const char*> folders,
                   std::initializer_list<const char*> names) {
  for (const char* folder : folders)
    for (const char* name : names)
      if (void* x = ::dlopen((std::string{folder} + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return x;
  return nullptr;
}

tl::unexpected<error> missing(gpu_api api, const char* cause) {
  if (api == gpu_api::hip)
    return infrastructure_error("hiprtc_missing", std::string{"failed to open hipRTC: "} + cause,
                                "install ROCm's HIP runtime, or use --backend cpu");
  return infrastructure_error("nvrtc_missing", std::string{"failed to open NVRTC: "} + cause,
                              "install the CUDA toolkit (libnvrtc), or use --backend cpu");
}

expected<compiler_library> load_nvrtc() {
  void* library =
      open_library({"", "/usr/local/cuda/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/"},
                   {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  if (library == nullptr)
    return missing(gpu_api::cuda, "libnvrtc.so is neither on the loader's path nor below "
                                  "/usr/local/cuda");
  compiler_library x;
  symbols from{library};
  from.find(x.version, "nvrtcVersion");
  from.find(x.create, "nvrtcCreateProgram");
  from.find(x.destroy, "nvrtcDestroyProgram");
  from.find(x.compile, "nvrtcCompileProgram");
  from.find(x.log_size, "nvrtcGetProgramLogSize");
  from.find(x.log, "nvrtcGetProgramLog");
  from.find(x.code_size, "nvrtcGetCUBINSize");
  from.find(x.code, "nvrtcGetCUBIN");
  if (!from.complete()) return missing(gpu_api::cuda, "it lacks a function");
  return x;
}

// Old ROCm has it within libamdhip64.
expected<compiler_library> load_hiprtc() {
  void* library =
      open_library({"", "/opt/rocm/lib/"}, {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5",
                                            "libhiprtc.so", "libamdhip64.so.5"});
  if (library == nullptr)
    return missing(gpu_api::hip,
                   "libhiprtc.so is neither on the loader's path nor in /opt/rocm/lib");
  compiler_library x;
  symbols from{library};
  from.find(x.version, "hiprtcVersion");
  from.find(x.create, "hiprtcCreateProgram");
  from.find(x.destroy, "hiprtcDestroyProgram");
  from.find(x.compile, "hiprtcCompileProgram");
  from.find(x.log_size, "hiprtcGetProgramLogSize");
  from.find(x.log, "hiprtcGetProgramLog");
  from.find(x.code_size, "hiprtcGetCodeSize");
  from.find(x.code, "hiprtcGetCode");
  if (!from.complete()) return missing(gpu_api::hip, "it lacks a function");
  return x;
}

const expected<compiler_library>& library_of(gpu_api api) {
  if (api == gpu_api::hip) {
    static const expected<compiler_library> opened = load_hiprtc();
    return opened;
  }
  static const expected<compiler_library> opened = load_nvrtc();
  return opened;
}

} // namespace

expected<runtime_compiler_facts> find_runtime_compiler(gpu_api api) {
  const auto& opened = library_of(api);
  KM_TRY(opened);
  runtime_compiler_facts result;
  int major = 0;
  int minor = 0;
  if (opened->version(&major, &minor) == 0)
    result.version = std::to_string(major) + "." + std::to_string(minor);
  Dl_info where{};
  if (::dladdr(reinterpret_cast<void*>(opened->version), &where) != 0 && where.dli_fname != nullptr)
    result.library = where.dli_fname;
  return result;
}

expected<compiled_device_code> compile_device_code(const std::string& source,
                                                   const std::string& name,
                                                   const std::string& architecture,
                                                   const std::vector<std::string>& flags) {
  bool amd = architecture.starts_with("gfx");
  const auto& opened = library_of(amd ? gpu_api::hip : gpu_api::cuda);
  KM_TRY(opened);
  program x = nullptr;
  if (opened->create(&x, source.c_str(), name.c_str(), 0, nullptr, nullptr) != 0)
    return infrastructure_error("nvrtc_failed", "failed to start a compile of " + name);
  std::string target = (amd ? "--offload-arch=" : "-arch=") + architecture;
  std::vector<const char*> options{target.c_str(), "-std=c++20"};
  for (const auto& flag : flags) options.push_back(flag.c_str());
  compiled_device_code result;
  result.ok = opened->compile(x, static_cast<int>(options.size()), options.data()) == 0;
  size_t size = 0;
  if (opened->log_size(x, &size) == 0 && size > 1) {
    result.log.resize(size);
    (void)opened->log(x, result.log.data());
    result.log.resize(size - 1);
    // ptxas puts a zero behind what it says of a kernel, and then what it has against it.
    std::erase(result.log, '\0');
  }
  if (result.ok && opened->code_size(x, &size) == 0) {
    result.cubin.resize(size);
    result.ok = opened->code(x, result.cubin.data()) == 0;
  }
  (void)opened->destroy(&x);
  return result;
}

} // namespace kernelmill::cuda

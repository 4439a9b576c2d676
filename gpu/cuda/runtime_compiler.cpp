#include "gpu/cuda/runtime_compiler.hpp"

#include <dlfcn.h>

#include "gpu/cuda/symbols.hpp"

namespace kernelmill::cuda {

namespace {

struct program_object;
using program = program_object*;

struct nvrtc {
  int (*version)(int*, int*) = nullptr;
  int (*create)(program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(program*) = nullptr;
  int (*compile)(program, int, const char* const*) = nullptr;
  int (*log_size)(program, size_t*) = nullptr;
  int (*log)(program, char*) = nullptr;
  int (*cubin_size)(program, size_t*) = nullptr;
  int (*cubin)(program, char*) = nullptr;
};

void* open_library() {
  // The name alone finds what the loader knows; toolkits often lie where it does not look.
  for (const char* folder :
       {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/"})
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      if (void* x = ::dlopen((std::string{folder} + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return x;
  return nullptr;
}

expected<nvrtc> load() {
  void* library = open_library();
  auto missing = [](const char* cause) {
    return infrastructure_error("nvrtc_missing", std::string{"failed to open NVRTC: "} + cause,
                                "install the CUDA toolkit (libnvrtc), or use --backend cpu");
  };
  if (library == nullptr)
    return missing("libnvrtc.so is neither on the loader's path nor below "
                   "/usr/local/cuda");
  nvrtc x;
  symbols from{library};
  from.find(x.version, "nvrtcVersion");
  from.find(x.create, "nvrtcCreateProgram");
  from.find(x.destroy, "nvrtcDestroyProgram");
  from.find(x.compile, "nvrtcCompileProgram");
  from.find(x.log_size, "nvrtcGetProgramLogSize");
  from.find(x.log, "nvrtcGetProgramLog");
  from.find(x.cubin_size, "nvrtcGetCUBINSize");
  from.find(x.cubin, "nvrtcGetCUBIN");
  if (!from.complete()) return missing("it lacks a function");
  return x;
}

const expected<nvrtc>& library() {
  static const expected<nvrtc> opened = load();
  return opened;
}

} // namespace

expected<runtime_compiler_facts> find_runtime_compiler() {
  const auto& opened = library();
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
  const auto& opened = library();
  KM_TRY(opened);
  program x = nullptr;
  if (opened->create(&x, source.c_str(), name.c_str(), 0, nullptr, nullptr) != 0)
    return infrastructure_error("nvrtc_failed", "failed to start a compile of " + name);
  std::string target = "-arch=" + architecture;
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
  if (result.ok && opened->cubin_size(x, &size) == 0) {
    result.cubin.resize(size);
    result.ok = opened->cubin(x, result.cubin.data()) == 0;
  }
  (void)opened->destroy(&x);
  return result;
}

} // namespace kernelmill::cuda

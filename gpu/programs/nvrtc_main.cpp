// kernelmill-nvrtc: compiles one source of the contract `device` inside the sandbox: source text
// and cubin go to descriptor 5 in the form of device_artifact.hpp, the compiler's words to stdout.
//   kernelmill-nvrtc --nvrtc=LIBRARY SOURCE ARCHITECTURE [FLAG...]
//   kernelmill-nvrtc --nvrtc=LIBRARY --version [ARCHITECTURE]
// LIBRARY is the path of libnvrtc, or of libhiprtc for an architecture of AMD's; empty: where the
// loader finds it.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <dlfcn.h>
#include <unistd.h>

#include "gpu/cuda/runtime_compiler.hpp"
#include "gpu/task/device_artifact.hpp"

namespace kernelmill {

namespace {

constexpr int product_descriptor = 5;
constexpr int compile_failed = 1; // exit codes, as of other compilers

int say(const std::string& text, int code) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  return code;
}

// NVRTC and its built-in headers by their paths: what is open already is what their names stand for
// when they are opened by name.
void open_by_path(const std::filesystem::path& library) {
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator{library.parent_path(), problem})
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so."))
      (void)::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  (void)::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
}

bool write_all(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    auto n = ::write(product_descriptor, bytes.data() + done, bytes.size() - done);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

int compile(const std::string& path, const std::string& architecture,
            const std::vector<std::string>& flags) {
  std::ifstream in{path, std::ios::binary};
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return say("failed to read " + path + "\n", nvrtc_unusable);
  auto source = text.str();
  auto compiled = cuda::compile_device_code(source, path, architecture, flags);
  if (!compiled) return say(render(compiled.error()) + "\n", nvrtc_unusable);
  if (!compiled->ok) return say(compiled->log, compile_failed);
  if (!write_all(pack_device_artifact({source, compiled->cubin})))
    return say("failed to write the cubin\n", nvrtc_unusable);
  return say(compiled->log, 0);
}

} // namespace

} // namespace kernelmill

int main(int argc, char** argv) {
  using namespace kernelmill;
  const std::string option = "--nvrtc=";
  std::vector<std::string> words{argv + 1, argv + argc};
  if (words.size() < 2 || !words[0].starts_with(option)) {
    std::fputs("usage: kernelmill-nvrtc --nvrtc=LIBRARY SOURCE ARCHITECTURE [FLAG...]\n", stderr);
    return 2;
  }
  if (auto path = words[0].substr(option.size()); !path.empty()) open_by_path(path);
  if (words[1] == "--version") {
    bool amd = words.size() > 2 && words[2].starts_with("gfx");
    auto found = cuda::find_runtime_compiler(amd ? cuda::gpu_api::hip : cuda::gpu_api::cuda);
    return say((found ? found->version : render(found.error())) + "\n", found ? 0 : nvrtc_unusable);
  }
  if (words.size() < 3) return say("failed to compile: no architecture\n", nvrtc_unusable);
  return compile(words[1], words[2], {words.begin() + 3, words.end()});
}

// kernelmill-nvrtc: compiles one source of the contract `device` inside the sandbox: source text
// and cubin go to descriptor 5 in the form of device_artifact.hpp, the compiler's words to stdout.
//   kernelmill-nvrtc SOURCE ARCHITECTURE [FLAG...]
//   kernelmill-nvrtc --version

#include <cstdio>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "gpu/cuda/runtime_compiler.hpp"
#include "gpu/task/device_artifact.hpp"

namespace kernelmill {

namespace {

constexpr int product_descriptor = 5;
constexpr int compile_failed = 1; // exit codes, as of other compilers
constexpr int no_compiler = 3;

int say(const std::string& text, int code) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  return code;
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
  if (!in || !(text << in.rdbuf())) return say("failed to read " + path + "\n", no_compiler);
  auto source = text.str();
  auto compiled = cuda::compile_device_code(source, path, architecture, flags);
  if (!compiled) return say(render(compiled.error()) + "\n", no_compiler);
  if (!compiled->ok) return say(compiled->log, compile_failed);
  if (!write_all(pack_device_artifact({source, compiled->cubin})))
    return say("failed to write the cubin\n", no_compiler);
  return say(compiled->log, 0);
}

} // namespace

} // namespace kernelmill

int main(int argc, char** argv) {
  if (argc == 2 && std::string{argv[1]} == "--version") {
    auto version = kernelmill::cuda::find_runtime_compiler();
    return kernelmill::say((version ? version->version : kernelmill::render(version.error())) + "\n",
                           version ? 0 : kernelmill::no_compiler);
  }
  if (argc < 3) {
    std::fputs("usage: kernelmill-nvrtc SOURCE ARCHITECTURE [FLAG...]\n", stderr);
    return 2;
  }
  return kernelmill::compile(argv[1], argv[2], {argv + 3, argv + argc});
}

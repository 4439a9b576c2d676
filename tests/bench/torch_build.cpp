// Builds Python candidates as a node would, and says what each took:
//   torch_build PYTHON cpu|cuda CACHE_DIRECTORY CANDIDATE.py...
// The candidates run in the sandbox alone.

#include <cstdio>
#include <filesystem>

#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "messages/base/files.hpp"

int main(int argc, char** argv) {
  using namespace kernelmill;
  if (argc < 5) {
    std::fprintf(stderr, "usage: torch_build PYTHON cpu|cuda CACHE_DIRECTORY CANDIDATE.py...\n");
    return 2;
  }
  auto programs = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  auto processes = spawner::launch(programs / "bin/kernelmill-spawner");
  if (!processes) {
    std::fprintf(stderr, "%s\n", render(processes.error()).c_str());
    return 1;
  }
  sandbox walls{*processes};
  toolchain_options options;
  options.python = argv[1];
  options.backend = argv[2];
  options.cache_directory = argv[3];
  options.deadline_ms = 300'000;
  native_toolchain toolchain{walls, options};
  for (int i = 4; i < argc; ++i) {
    auto source = read_whole(std::string{argv[i]}).value_or("");
    auto request = build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
      x.setContract("torch");
      x.setBackend(argv[2]);
      x.setSource(source);
    });
    auto result = toolchain.build(*request.open());
    auto view = result.open();
    std::string log = view->getLog();
    std::printf("%s: %s, %.1f s%s%s\n", argv[i],
                view->getCompiled() ? "built" : view->getFault().getMessage().cStr(),
                view->getSeconds(), view->getCached() ? ", cached" : "",
                log.find("torch's own headers") == log.npos ? "" : ", torch's own headers");
    if (!view->getCompiled()) std::printf("%s\n", log.c_str());
    std::fflush(stdout);
  }
  return 0;
}

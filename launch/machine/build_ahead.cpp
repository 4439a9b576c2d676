#include "launch/machine/build_ahead.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include <unistd.h>

#include "gpu/toolchain/trusted_build.hpp"

namespace kernelmill {

void build_ahead(spawner& processes, const chosen_backend& backend, const std::string& cache,
                 const std::vector<std::string>& task_directories) {
  if (backend.gpus.empty()) return;
  std::vector<std::string> sources;
  for (const auto& folder : std::set<std::string>(task_directories.begin(), task_directories.end()))
    for (const char* name : {"/reference.cu", "/baseline.cu", "/reference.cpp"})
      if (::access((folder + name).c_str(), R_OK) == 0) // a task of contract torch has none
        sources.push_back(folder + name);
  trusted_builder builder{processes, cache, backend.gpus.front().architecture};
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> workers;
  auto count = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), sources.size());
  for (size_t i = 0; i < count; ++i)
    workers.emplace_back([&] {
      for (size_t k = next++; k < sources.size(); k = next++) (void)builder.build(sources[k]);
    });
}

} // namespace kernelmill

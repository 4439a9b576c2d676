#include "launch/machine/build_ahead.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "gpu/task/task.hpp"
#include "gpu/toolchain/trusted_build.hpp"

namespace kernelmill {

void build_ahead(spawner& processes, const chosen_backend& backend, const std::string& cache,
                 const std::vector<std::string>& task_directories) {
  if (backend.gpus.empty()) return;
  std::vector<std::pair<std::string, std::string>> sources; // each with its declaration
  for (const auto& folder :
       std::set<std::string>(task_directories.begin(), task_directories.end())) {
    auto what = load_task_folder(folder);
    // Problems in Python and programs have none of them.
    if (!what || (*what)->contract == contract_kind::torch ||
        (*what)->contract == contract_kind::program)
      continue;
    judging_terms terms;
    terms.backend = backend.name;
    auto here = on_terms(**what, std::move(terms));
    if (!here) continue;
    for (const char* stem : {"reference", "baseline"})
      sources.emplace_back(device_file(**here, stem), std::string{});
    sources.emplace_back(folder + "/reference.cpp", (*what)->reference_declaration());
  }
  toolchain_options built;
  backend.apply(built);
  trusted_builder builder{processes, cache, {built.backend, built.architecture, built.hip_folder}};
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> workers;
  auto count = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), sources.size());
  for (size_t i = 0; i < count; ++i)
    workers.emplace_back([&] {
      for (size_t k = next++; k < sources.size(); k = next++)
        (void)builder.build(sources[k].first, sources[k].second);
    });
}

} // namespace kernelmill

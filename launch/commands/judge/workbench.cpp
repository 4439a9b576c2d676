#include "launch/commands/judge/workbench.hpp"

#include "launch/config/paths.hpp"
#include "launch/config/run_config.hpp"
#include "launch/machine/build_ahead.hpp"

namespace kernelmill::commands {

namespace {

expected<std::string> need(const std::string& name) {
  auto path = helper_program(name);
  if (path.empty())
    return infrastructure_error("program_missing",
                                "failed to find " + name + ": it is not beside kernelmill",
                                "build it: ninja -C build " + name);
  return path;
}

} // namespace

expected<workbench> workbench::open(chosen_backend backend) {
  auto program = need("kernelmill-spawner");
  KM_TRY(program);
  auto processes = spawner::launch(*program);
  KM_TRY(processes);
  return workbench{std::make_unique<spawner>(std::move(*processes)), std::move(backend)};
}

native_toolchain& workbench::toolchain() {
  if (!toolchain_) {
    toolchain_options options;
    options.compiler = compile_section{}.compiler;
    options.cache_directory = build_directory_.empty() ? default_build_cache() : build_directory_;
    backend_.apply(options);
    if (keeps_lines_) options.extra_flags = {"-lineinfo"};
    toolchain_ = std::make_unique<native_toolchain>(*walls_, options);
  }
  return *toolchain_;
}

expected<std::vector<referee_client*>> workbench::referees() {
  auto program = need("kernelmill-referee");
  KM_TRY(program);
  size_t wanted = std::max<size_t>(1, backend_.gpus.size());
  while (referees_.size() < wanted) {
    referee_options options;
    options.cache_directory = default_build_cache();
    options.pool = warm_;
    options.determinism_runs = determinism_runs_;
    options.lost = lost_;
    options.layers = layers_that_stood(layers());
    backend_.apply(options, referees_.size());
    if (!backend_.gpus.empty()) options.timed_cpus = cores_.timed[referees_.size()];
    auto client = referee_client::launch(*processes_, *program, options);
    KM_TRY(client);
    referees_.push_back(std::make_unique<referee_client>(std::move(*client)));
  }
  std::vector<referee_client*> result;
  for (auto& x : referees_) result.push_back(x.get());
  return result;
}

void workbench::build_ahead(const std::vector<std::string>& task_directories) {
  kernelmill::build_ahead(*processes_, backend_, default_build_cache(), task_directories);
}

expected<referee_client*> workbench::referee() {
  if (backend_.gpus.size() > 1) backend_.gpus.resize(1);
  auto all = referees();
  KM_TRY(all);
  return all->front();
}

} // namespace kernelmill::commands

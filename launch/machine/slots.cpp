#include "launch/machine/slots.hpp"

#include <algorithm>

#include "gpu/referee/lost_beside.hpp"
#include "launch/config/paths.hpp"
#include "launch/machine/build_ahead.hpp"

namespace kernelmill {

namespace {

std::string slot_name(size_t number, const std::vector<int>& cpus) {
  std::string result = "cpu" + std::to_string(number) + " (cores ";
  for (size_t i = 0; i < cpus.size(); ++i) result += (i > 0 ? "," : "") + std::to_string(cpus[i]);
  return result + ")";
}

std::string gpu_name(const cuda::gpu& x) {
  return "gpu" + std::to_string(x.index) + " (" + x.name + ")";
}

} // namespace

expected<void> check_layers(const std::vector<sandbox_layer>& layers,
                            const std::vector<std::string>& required) {
  for (auto& name : required) {
    auto i = std::find_if(layers.begin(), layers.end(), [&](auto& x) { return x.name == name; });
    if (i == layers.end())
      return configuration_error("unknown_layer",
                                 "evaluation.required_layers names no sandbox layer: " + name,
                                 "`kernelmill doctor` lists them");
    if (i->state != layer_state::active)
      return configuration_error(
          "sandbox_layer_missing",
          "the sandbox layer " + name +
              (i->state == layer_state::weaker ? " is weaker here: " : " is missing here: ") +
              i->detail,
          i->remedy.empty() ? "`kernelmill doctor` says more" : i->remedy);
  }
  return {};
}

std::vector<std::vector<int>> slot_cpus(const evaluation_section& config) {
  auto all = cores_of_this_process();
  auto slots = config.slots > 0 ? config.slots : 1u;
  auto each = config.threads_per_slot > 0 ? size_t{config.threads_per_slot}
                                          : std::max<size_t>(1, all.size() / slots);
  std::vector<std::vector<int>> result(slots);
  size_t next = 0;
  for (auto& slot : result)
    for (size_t i = 0; i < std::min(each, all.size()); ++i)
      slot.push_back(all[next++ % all.size()]);
  return result;
}

bool node_slots::sandbox_complete() const {
  return std::none_of(layers.begin(), layers.end(),
                      [](auto& layer) { return layer.state == layer_state::missing; });
}

expected<node_slots> start_slots(const run_config& config, const chosen_backend& backend,
                                 const std::vector<std::string>& task_directories, bool evaluate) {
  node_slots result;
  // One that the configuration names may come while the run waits for it.
  if (config.compile.compiler == compile_section{}.compiler)
    KM_TRY(check_compiler(config.compile.compiler));
  auto processes = spawner::launch(helper_program("kernelmill-spawner"));
  KM_TRY(processes);
  result.processes = std::make_shared<spawner>(std::move(*processes));
  result.walls = std::make_shared<sandbox>(*result.processes);
  // A machine that only compiles has all cores for that.
  result.cores = share_cores(evaluate ? backend.gpus.size() : 0);
  result.walls->keep_to(result.cores.compilers);
  result.layers = result.walls->probe();
  KM_TRY(check_layers(result.layers, config.evaluation.required_layers));
  toolchain_options options;
  options.compiler = config.compile.compiler;
  options.cache_directory =
      config.compile.cache_dir.empty() ? default_build_cache() : config.compile.cache_dir;
  options.deadline_ms = config.compile.deadline_ms;
  options.memory_bytes = uint64_t{config.compile.memory_mb} << 20;
  backend.apply(options);
  result.compile_slots =
      config.compile.slots > 0
          ? config.compile.slots
          : static_cast<uint32_t>(std::max<size_t>(1, result.cores.compilers.empty()
                                                          ? cores_of_this_process().size()
                                                          : result.cores.compilers.size()));
  result.toolchain = std::make_shared<native_toolchain>(*result.walls, options);
  build_ahead(*result.processes, backend, options.cache_directory, task_directories);
  if (!evaluate) return result;
  // On GPUs the slots are the GPUs, and every core serves them all but those on which they are
  // timed.
  auto slots = backend.gpus.empty() ? slot_cpus(config.evaluation)
                                    : std::vector<std::vector<int>>(backend.gpus.size());
  auto lost = std::make_shared<lost_beside>();
  for (size_t i = 0; i < slots.size(); ++i) {
    referee_options referee;
    referee.lost = lost;
    referee.compiler = config.compile.compiler;
    referee.cpus = slots[i];
    referee.determinism_runs = config.evaluation.determinism_runs;
    backend.apply(referee, i);
    if (!backend.gpus.empty()) {
      referee.pool = gpu_pool;
      referee.timed_cpus = result.cores.timed[i];
    }
    referee.cache_directory = options.cache_directory;
    referee.layers = layers_that_stood(result.layers);
    auto client =
        referee_client::launch(*result.processes, helper_program("kernelmill-referee"), referee);
    KM_TRY(client);
    result.referees.push_back(std::make_shared<referee_client>(std::move(*client)));
    result.referee_names.push_back(backend.gpus.empty() ? slot_name(i, slots[i])
                                                        : gpu_name(backend.gpus[i]));
  }
  return result;
}

} // namespace kernelmill

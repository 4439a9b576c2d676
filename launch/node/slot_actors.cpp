#include "launch/node/slot_actors.hpp"

#include <caf/all.hpp>

#include "actors/compiler/compiler.hpp"
#include "actors/gpu_runner/gpu_runner.hpp"
#include "actors/profiler/profiler.hpp"

namespace kernelmill {

std::vector<status_actor> spawn_slot_actors(caf::actor_system& system, const node_slots& slots,
                                            const cluster_actor& cluster, const logger& log) {
  std::vector<status_actor> result;
  auto on_quarantine = [log](const std::string& slot, const error& why) {
    log.warn({"gpu-runner", {}, {}, {}},
             "the slot " + slot + " is out of service: " + render(why) + "; the others continue");
  };
  for (uint32_t i = 0; i < slots.compile_slots; ++i) {
    auto compiler =
        spawn_sandboxed_compiler(system, slots.toolchain, "compile" + std::to_string(i));
    result.emplace_back(compiler);
    caf::anon_send(cluster, atom::lease_v, compiler, uint32_t{1});
  }
  for (size_t i = 0; i < slots.referees.size(); ++i) {
    auto runner =
        spawn_referee_runner(system, slots.referees[i], slots.referee_names[i], on_quarantine);
    auto profiler = system.spawn(counting_profiler, runner);
    result.emplace_back(runner);
    result.emplace_back(profiler);
    // Two credits: the next job is already there when a candidate is done.
    caf::anon_send(cluster, atom::lease_v, runner, uint32_t{2});
    caf::anon_send(cluster, atom::lease_v, profiler, uint32_t{1});
  }
  return result;
}

} // namespace kernelmill

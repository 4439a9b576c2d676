#pragma once

// A node as the head's cluster actor sees it: a compiler, a runner and a profiler that take as many
// jobs as the node has slots, and end when the node is gone. Each has a thread of its own, since it
// reads and writes files.

#include <memory>
#include <string>

#include "actors/cluster/parcels.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct remote_node {
  std::string name;
  node_gate_actor gate;
  uint64_t epoch = 0; ///< of this head
  parcel_packer packer;
  std::shared_ptr<const parcel_shelf> shelf; ///< of the head: where built libraries go
  bool own_threads = true;                   ///< false only under the deterministic scheduler
};

compiler_actor spawn_remote_compiler(caf::actor_system& system, std::shared_ptr<remote_node> node);
gpu_runner_actor spawn_remote_runner(caf::actor_system& system, std::shared_ptr<remote_node> node);
profiler_actor spawn_remote_profiler(caf::actor_system& system, std::shared_ptr<remote_node> node);

} // namespace kernelmill

#pragma once

// The contract `program` in a slot: builds the task's baseline once, runs its tests around the
// candidate, and times both by the task's benchmark, in turns.

#include <map>
#include <memory>
#include <string>

#include "gpu/program/program_run.hpp"
#include "gpu/referee/machine.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/program_build.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

class device;

struct program_lane_options {
  std::string compiler;                      ///< g++ of a CPU slot; empty: the usual one
  std::vector<int> cpus;                     ///< affinity of programs; empty: all
  std::string gpu_node;                      ///< "/dev/nvidia0"; empty: a CPU slot
  std::string driver;                        ///< path of the GPU driver's library
  uint64_t memory_bytes = uint64_t{4} << 30; ///< of a build
};

/// Thread safety: none.
class program_lane {
public:
  /// All outlive it; `gpu` is null on a CPU slot.
  program_lane(sandbox& walls, machine& hardware, const device* gpu, program_lane_options options);
  ~program_lane();

  /// Every fault is part of the answer.
  Message<wire::EvaluateResult> evaluate(wire::EvaluateRequest::Reader request);

  /// Whether the baseline passes, and answers that do nothing or leave early fail.
  Message<wire::CheckResult> check(const std::string& directory);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace kernelmill

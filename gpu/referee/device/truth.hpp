#pragma once

// What a call at a large shape should have given, made on the GPU in memory that no candidate ever
// sees, and the comparison there. It is trusted because it agrees with the host's reference, in
// fp64 both, on every case of the task.

#include "gpu/referee/device/arena.hpp"

namespace kernelmill {

/// Thread safety: none. Throws device_failure.
class device_truth {
public:
  /// `reference` is that of reference.cu.
  device_truth(device_arena& arena, reference_function reference);

  /// Compares with the host's reference on every case. An empty result means that they agree.
  std::optional<std::string> disagreement(workload& host, slot& any);

  /// Looks at the outputs of one set at the selected shape; adds to the audit.
  void check(const task_case& which, unsigned set);

  /// Says what an audit that found something wrong found: "y[3] of call 2: got 1.5, want 2.25".
  std::string describe(const task_case& which, const device_audit& found);

private:
  struct expectation {
    device_memory want;
    device_memory scale;
  };
  void find(const task_case& which, unsigned set);
  std::optional<std::string> differs(const workload& host, size_t argument) const;

  device_arena& arena_;
  reference_function reference_;
  std::vector<expectation> outputs_; // by argument
};

} // namespace kernelmill

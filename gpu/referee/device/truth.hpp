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
  device_truth(device& gpu, const task& x, reference_function reference);

  /// Where the inputs of the reference lie: its own copy, which no candidate can reach.
  cuda::device_pointer input(size_t argument) const { return inputs_[argument].address(); }

  /// Compares with the host's reference on every case. An empty result means that they agree.
  std::optional<std::string> disagreement(workload& host);

  /// Whether the reference reads its own copy of the inputs, which hold the contents of the set, or
  /// those of the set itself, which only device code has seen: it runs no more when they are read.
  enum class reads : unsigned char { own_copy, set };

  /// Looks at the outputs of one set, by so many times the bounds; adds to the audit.
  void check(const task_case& which, const device_arena& arena, unsigned set, reads what,
             double share_of_bounds);

  /// Says what an audit that found something wrong found: "y[3] of call 2: got 1.5, want 2.25".
  std::string describe(const task_case& which, const device_arena& arena, const device_audit& found,
                       reads what);

private:
  struct expectation {
    device_memory want;
    device_memory scale;
  };
  void find(const task_case& which, const device_arena* inputs, unsigned set);
  std::optional<std::string> differs(const workload& host, size_t argument) const;

  device& gpu_;
  const task& task_;
  reference_function reference_;
  std::vector<device_memory> inputs_; // by argument
  std::vector<expectation> outputs_;  // by argument
};

} // namespace kernelmill

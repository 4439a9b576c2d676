#pragma once

// The contents of one call and the truth about it. All of it is the referee's private memory;
// candidates see copies of the inputs and nothing else.

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/referee/comparison.hpp"
#include "gpu/task/distribution.hpp"
#include "gpu/task/task.hpp"

namespace kernelmill {

/// What a candidate produced for one tensor, in private memory.
struct taken_output {
  std::vector<float> f32;
  std::vector<int32_t> i32;
};

struct tensor_contents {
  size_t count = 0;
  size_t row = 1;
  std::vector<float> f32; ///< before the call; inputs and inouts
  std::vector<int32_t> i32;
  std::vector<double> wide;  ///< f32 widened; of an output or inout: the truth after the call
  std::vector<double> scale; ///< f32 outputs and inouts
  std::vector<int32_t> want; ///< i32 outputs and inouts: the truth
};

/// Takes every argument in order, with a scale after each f32 output; see docs/reference/tasks.md.
using reference_function = void*;

/// Twice the arguments of a task, because outputs have scales.
inline constexpr size_t max_reference_arguments = 32;

/// Calls a reference with pointers and integers in order. As in the candidate: every argument is of
/// class INTEGER, and the callee ignores what it does not know of.
void call_reference(reference_function function,
                    const std::array<int64_t, max_reference_arguments>& values);

/// Thread safety: none.
class workload {
public:
  /// `reference` may be null: then truth() must not be called. `x` outlives this.
  workload(const task& x, reference_function reference);

  /// Sets the shape of the next calls.
  void select(const task_case& which);
  const task_case& selected() const noexcept { return *case_; }

  /// Makes the contents of one call; the truth is then out of date.
  void fill(const secret_seed& seed, uint64_t call);

  /// Gives one input the contents of another call and leaves the rest.
  void refill(size_t argument, const secret_seed& seed, uint64_t call);

  /// Runs the reference.
  void find_truth();

  /// The worst over all outputs. `outputs` is indexed like the task's arguments. `share` is that of
  /// each bound that may be used up.
  comparison check(const std::vector<taken_output>& outputs, double share = 1) const;

  const task& spec() const noexcept { return *task_; }
  const tensor_contents& tensor(size_t argument) const { return tensors_[argument]; }
  size_t bytes(size_t argument) const { return tensors_[argument].count * 4; }
  const std::string& distribution(size_t argument) const;

  /// "normal", or "x=normal mask=sparse" where inputs differ.
  std::string distribution_text() const;

private:
  void widen(size_t argument);

  const task* task_;
  reference_function reference_;
  const task_case* case_ = nullptr;
  std::vector<tensor_contents> tensors_;
};

bool is_output(const argument& x) noexcept;
bool is_filled(const argument& x) noexcept;

/// Bytes of a tensor at one shape; 0 for a scalar.
size_t tensor_bytes(const task& x, size_t argument, const task_case& which);

/// The most bytes that the tensor has in any case.
size_t capacity_of(const task& x, size_t argument);

/// Bytes of all tensors at one shape.
double working_set(const task& x, const task_case& which);

} // namespace kernelmill

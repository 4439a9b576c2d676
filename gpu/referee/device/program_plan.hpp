#pragma once

// Device code's launch lines as numbers: what a process that runs it is told for one shape.

#include <optional>
#include <string>
#include <vector>

#include "gpu/candidate/device_program.hpp"
#include "gpu/task/launch_plan.hpp"
#include "gpu/task/task.hpp"

namespace kernelmill {

/// Thread safety: as a value.
class program_plan {
public:
  /// Reads the launch lines of a source. `x` outlives this.
  static expected<program_plan> read(const std::string& source, const task& x);

  /// Writes all but what depends on a shape. Fails with "bad_launch" where scratch memory is
  /// impossible at some shape of the task.
  std::optional<error> write(device_program& into) const;

  /// Makes the geometry that of a shape. Fails with "bad_launch" where it is impossible there.
  std::optional<error> select(const scalar_values& scalars, device_program& into) const;

  const std::vector<launch_line>& launches() const noexcept { return plan_.launches; }
  const std::vector<scratch_line>& scratch() const noexcept { return plan_.scratch; }

private:
  std::optional<error> write_scratch(device_program& into) const;

  const task* task_ = nullptr;
  launch_plan plan_;
  std::vector<std::vector<bound_argument>> bound_;
};

} // namespace kernelmill

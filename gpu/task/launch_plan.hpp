#pragma once

// What one call of a candidate of the `device` contract does. The source is device code alone;
// comment lines in it say which kernels are launched, in order, on one stream:
//
//   // scratch: partial[4 * rows * 8]
//   // launch: sums<<<dim3(8, rows), 256>>>(x, partial, rows, cols)
//   // launch: total<<<ceil_div(rows, 128), 128, 0>>>(partial, y, rows)
//
// Grid, block, bytes of dynamic shared memory and bytes of scratch are integer expressions of the
// task's scalars. An argument is the name of a tensor or a scratch buffer, or such an expression.

#include <array>
#include <string>
#include <vector>

#include "gpu/task/task.hpp"

namespace kernelmill {

inline constexpr size_t most_launches = 8;
inline constexpr size_t most_launch_arguments = 16;
inline constexpr size_t most_scratch_buffers = 8;
inline constexpr int64_t most_scratch_bytes = int64_t{256} << 20; ///< of all buffers together
inline constexpr size_t longest_kernel_name = 63;

struct launch_line {
  unsigned line = 0; ///< of the source, from 1
  std::string kernel;
  std::array<expression, 3> grid;
  std::array<expression, 3> block;
  expression shared; ///< bytes
  std::vector<std::string> arguments;
};

struct scratch_line {
  unsigned line = 0;
  std::string name;
  expression bytes;
};

struct launch_plan {
  std::vector<scratch_line> scratch;
  std::vector<launch_line> launches;
};

/// Reads the lines of a source. Fails with "bad_launch" (candidate), naming the line.
expected<launch_plan> parse_launch_plan(const std::string& source);

/// What the launch lines of a source say, in order.
std::vector<std::string> launch_texts(const std::string& source);

/// Whether a source says by a launch line that it is device code.
bool has_launch_lines(const std::string& source);

/// One argument, bound to a task.
struct bound_argument {
  enum class kind : unsigned char { tensor, scratch, value };
  kind what = kind::value;
  size_t index = 0; ///< of the task's argument or of the scratch buffer
  expression value;
};

/// One for each launch and argument. Fails with "bad_launch" when a name is unknown.
expected<std::vector<std::vector<bound_argument>>> bind_arguments(const launch_plan& plan,
                                                                  const task& x);

} // namespace kernelmill

#pragma once

// The contents that timed calls have. Timed is no world of its own: who is right or fast for the
// contents that are timed only has to meet all the others at the timed shape as well.

#include <string>
#include <vector>

#include "gpu/task/task.hpp"

namespace kernelmill {

/// `timed` itself, then the same shape with the fills of each case of the task, and with some that
/// are like them. Each has other fills and a name that tells them: "sparse", or "q=signs k=signs".
/// REQUIRES: `timed` is timed or timed_gpu of `x`.
std::vector<task_case> timed_kinds(const task& x, const task_case& timed);

} // namespace kernelmill

#pragma once

// The profile that costs nothing: what the build and the evaluation of a turn on a GPU tell of its
// kernels. No program is run for it.

#include <optional>
#include <string_view>

#include "gpu/task/task.hpp"
#include "messages/build.capnp.h"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"
#include "messages/profile.capnp.h"

namespace kernelmill {

/// Nothing on a CPU, and of what was not built. `source` is the candidate's: launch lines of the
/// contract `device` say grid, block and shared memory at the timed shape.
std::optional<Message<wire::ProfileResult>> tier0_profile(const task& what, std::string_view source,
                                                          wire::BuildResult::Reader built,
                                                          wire::EvaluateResult::Reader evaluated);

} // namespace kernelmill

#pragma once

// Calls the trainer for each step: a command that is run, or a server that is asked.

#include <functional>
#include <memory>

#include "launch/learning/training/child_processes.hpp"
#include "launch/learning/training/train_config.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::training {

/// What a step came to.
struct learned_step {
  std::string weights;    ///< a path that is there
  nlohmann::json metrics; ///< by name, numbers
};

using go_on = std::function<expected<void>()>;

/// Has the trainer learn from `request`, which lies in `folder`/request.json too. A trainer
/// that was killed is asked again: a step begins with the checkpoint before it, so it may be
/// taken again.
/// Errors: "trainer_failed", those of `check`.
expected<learned_step> have_learned(const train_config& config, child_processes& programs,
                                    const nlohmann::json& request, const std::string& folder,
                                    const go_on& check);

} // namespace kernelmill::training

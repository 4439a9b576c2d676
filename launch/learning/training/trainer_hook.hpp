#pragma once

// Who learns: a command that is run for each step, or a server that is asked for each.

#include <functional>
#include <memory>

#include <nlohmann/json.hpp>

#include "launch/learning/training/parts.hpp"
#include "launch/learning/training/train_config.hpp"

namespace kernelmill::training {

/// What a step came to.
struct learned_step {
  std::string weights;    ///< a path that is there
  nlohmann::json metrics; ///< by name, numbers
};

using go_on = std::function<expected<void>()>;

/// Has the trainer learn from `request`, which lies in `folder`/request.json too. Whoever was
/// killed is asked again: a step begins with the checkpoint before it, so it may be taken again.
/// Errors: "trainer_failed", those of `check`.
expected<learned_step> have_learned(const train_config& config, parts& programs,
                                    const nlohmann::json& request, const std::string& folder,
                                    const go_on& check);

} // namespace kernelmill::training

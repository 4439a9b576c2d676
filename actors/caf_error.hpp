#pragma once

// How our errors travel inside caf::error, and back: class in the code, the rest as context.

#include <caf/error.hpp>
#include <caf/fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill {

caf::error to_caf(const error& x);

/// Makes CAF render our errors as we do; without it, it prints their numbers.
void teach_errors(caf::actor_system_config& config);

/// Returns our error; a foreign one (timeout, receiver down) becomes class infrastructure.
error from_caf(const caf::error& x);

} // namespace kernelmill

#pragma once

// A HANDOFF whose runs are made in this process: what `kernelmill serve --runs` and `kernelmill
// train` stand on.

#include "launch/machine/slots.hpp"
#include "launch/server/rollouts/local_rollouts.hpp"

namespace kernelmill::rollouts {

/// What the slots of this machine are, for the records of runs.
lane_facts lane_of(const chosen_backend& backend, const node_slots& slots);

/// Makes `options.root` where it is not there, takes up the log in it, and starts. Errors:
/// "io_error", "store_locked" when another process has the folder, "store_damaged".
expected<handoff::handoff_actor> start_handoff(caf::actor_system& system, local_options options);

} // namespace kernelmill::rollouts

#pragma once

// The far end's process that runs one session's command and outlives the connection.

#include <string>

#include "messages/error.hpp"

namespace kernelmill::remote {

/// Runs the command of the session in `folder` and returns when it has ended. Its output goes to
/// the session's files, through a terminal of its own where the near end has one. Does nothing when
/// the command was started before.
expected<void> supervise(const std::string& folder);

/// Starts a process of this program that supervises the session, and returns when the command
/// runs. Errors: "infrastructure", when it cannot be started.
expected<void> start_supervisor(const std::string& folder);

} // namespace kernelmill::remote

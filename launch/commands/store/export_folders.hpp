#pragma once

#include "launch/commands/store/export_runs.hpp"

namespace kernelmill::commands {

/// `export --form sol`: solutions/ and traces/ of the family of flashinfer-trace.
expected<int> export_sol(const cli::invocation& in, const exported_runs& runs);

/// `export --form harbor-tasks`: a folder a task, which an agent works on and `kernelmill eval`
/// scores.
expected<int> export_harbor_tasks(const cli::invocation& in, const exported_runs& runs);

/// `export --follow`: rows of each group on stdout once, when it has ended, until the run has.
expected<int> export_following(const cli::invocation& in, exported_runs& runs,
                               const exports::request& what);

/// Refuses a folder that is not empty, unless --force.
expected<void> prepare_folder(const cli::invocation& in);

} // namespace kernelmill::commands

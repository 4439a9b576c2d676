#pragma once

#include "launch/cli/command.hpp"
#include "launch/node/node.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

/// The path as a user would type it.
std::string shown_path(const std::string& path);

/// What a user is told of a run.
enum class told : unsigned char {
  all,
  progress,   ///< all but what is for stdout: another prints results of several runs
  end_of_done ///< nothing of it is left to do: one sentence says that, and its log gets no lines
};

/// Runs a run to its end and says how it goes: what `run`, `resume` and `fork` have in common.
/// Returns the exit code. Errors: the run could not start.
expected<int> drive_run(const cli::invocation& in, run_options options, told how = told::all);

/// Whether the latest session of a run finished; not of a store that cannot be read now.
bool has_finished(const run_directory& run);

/// --accept-terms is a short name for run.accepted_terms.
expected<void> accept_terms(const cli::invocation& in, run_config& config);

} // namespace kernelmill::commands

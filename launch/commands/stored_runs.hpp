#pragma once

// The commands that work on what is stored, apart from those that make it: their rows.

#include "launch/cli/command.hpp"

namespace kernelmill::commands {

using cli::invocation;

cli::command candidate_branch_row();
cli::command candidate_promote_row();
cli::command candidate_revert_row();
cli::command candidate_show_row();
cli::command candidate_diff_row();
cli::command compare_row();
cli::command fork_row();
cli::command query_row();
cli::command rescore_row();
cli::command replay_row();

} // namespace kernelmill::commands

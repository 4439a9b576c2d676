#pragma once

// Every command of the program; each noun is a file of this folder.

#include "launch/cli/command.hpp"

namespace kernelmill::commands {

using cli::invocation;

expected<int> run(const invocation& in);
expected<int> resume(const invocation& in);
expected<int> eval(const invocation& in);
expected<int> judge_batch(const invocation& in);
expected<int> task_list(const invocation& in);
expected<int> task_show(const invocation& in);
expected<int> task_check(const invocation& in);
expected<int> task_import(const invocation& in);
expected<int> doctor(const invocation& in);
expected<int> show(const invocation& in);
expected<int> report(const invocation& in);
expected<int> export_runs(const invocation& in);
expected<int> ps(const invocation& in);
expected<int> cluster_init(const invocation& in);
expected<int> head(const invocation& in);
expected<int> node(const invocation& in);
expected<int> submit(const invocation& in);
expected<int> status(const invocation& in);
expected<int> drain(const invocation& in);
expected<int> cancel(const invocation& in);
expected<int> pause(const invocation& in);
expected<int> resume_at_head(const invocation& in);
expected<int> simulate(const invocation& in);
expected<int> policy_scripted(const invocation& in);
expected<int> policy_probe(const invocation& in);
expected<int> policy_attach(const invocation& in);
expected<int> policy_detach(const invocation& in);
expected<int> policy_list(const invocation& in);
expected<int> policy_weights(const invocation& in);
expected<int> config_list(const invocation& in);
expected<int> config_show(const invocation& in);
expected<int> config_validate(const invocation& in);
expected<int> config_schema(const invocation& in);
expected<int> index_build(const invocation& in);
expected<int> index_query(const invocation& in);
expected<int> completion(const invocation& in);
expected<int> version(const invocation& in);

/// What completion scripts ask for: "task" or "run" names.
expected<int> complete(const invocation& in);

/// Prints docs/reference/cli.md.
expected<int> reference(const invocation& in);

/// The table of all of the above; defined in main.cpp.
const cli::command_table& all();

} // namespace kernelmill::commands

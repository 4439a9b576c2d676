#pragma once

// The table of commands, in parts.

#include "launch/cli/command.hpp"

namespace kernelmill::commands {

/// Daily work: run, resume, eval, judge, show, ...
void add_run_commands(cli::command_table& table);

/// export.
void add_export_command(cli::command_table& table);

/// task list, show, check, import.
void add_task_commands(cli::command_table& table);

/// What is about a cluster: head, node, submit, status, ...
void add_cluster_commands(cli::command_table& table);

/// cluster init, which needs no cluster.
void add_credentials_commands(cli::command_table& table);

/// policy ... and index ...
void add_policy_and_index_commands(cli::command_table& table);

/// What `run`, `submit` and others take: files and overrides.
cli::argument_spec config_words();

/// --head, --credentials, --insecure-loopback: how to reach a head.
std::vector<cli::option_spec> with_head_options(std::vector<cli::option_spec> options);

/// An option without a value.
cli::option_spec flag(const char* name, const char* doc);

} // namespace kernelmill::commands

#pragma once

#include "launch/cli/command.hpp"

namespace kernelmill::commands {

/// The rows of the table that are about a cluster: head, node, submit, status, ...
void add_cluster_commands(cli::command_table& table);

/// What `run`, `submit` and others take: files and overrides.
cli::argument_spec config_words();

/// --head, --credentials, --insecure-loopback: how to reach a head.
std::vector<cli::option_spec> with_head_options(std::vector<cli::option_spec> options);

} // namespace kernelmill::commands

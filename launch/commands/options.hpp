#pragma once

// What the rows of several commands share: words, options and their texts.

#include <string>
#include <vector>

#include "launch/cli/command.hpp"
#include "launch/judging/candidate_judging.hpp"

namespace kernelmill::commands {

using cli::completes;

constexpr auto nothing = completes::nothing;

/// The row of a command that prints texts alone: it refuses -o csv and --columns before it works.
cli::command without_tables(cli::command row);

/// An option without a value.
cli::option_spec flag(const char* name, const char* doc);

/// What `run`, `submit` and others take: files and overrides.
cli::argument_spec config_words();

cli::option_spec runs_root();
cli::option_spec tasks_root();
cli::option_spec log_file();
cli::option_spec clock_option();

/// --bundle of what judges a candidate.
cli::option_spec bundle_option();

/// The interpreter for tasks of the contract `torch`.
cli::option_spec python_path();

/// What answers of the contract `torch` are asked for and judged by.
std::vector<cli::option_spec> with_torch_options(std::vector<cli::option_spec> options);
torch_choice torch_choice_of(const cli::invocation& in);

/// --credentials, --insecure-loopback: how a link is secured.
cli::option_spec credentials();
cli::option_spec insecure();

/// --head and how its link is secured: how to reach a head.
std::vector<cli::option_spec> with_head_options(std::vector<cli::option_spec> options);

/// What --kind takes of a policy server.
const std::vector<std::string>& server_kinds();

} // namespace kernelmill::commands

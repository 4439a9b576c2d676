#pragma once

// How a command is told of an embedder: the keys `retrieval.embedder.*` of a run, as options.

#include <memory>

#include "launch/cli/command.hpp"
#include "retrieval/search/embedder.hpp"

namespace kernelmill::commands {

/// Adds --embedder and what belongs to it.
cli::command with_embedder_options(cli::command x);

/// Null where none of them was typed: an index then has the built-in embedder, or its own.
expected<std::shared_ptr<embedder>> embedder_of(const cli::invocation& in);

} // namespace kernelmill::commands

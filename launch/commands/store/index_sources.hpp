#pragma once

// Where kernels of an index are from: runs and files of rows.

#include <optional>
#include <string>
#include <vector>

#include "launch/cli/command.hpp"
#include "launch/commands/store/index_intake.hpp"

namespace kernelmill::commands {

/// One --from.
struct index_source {
  std::string kind;  ///< "cards", "kernelbook", "ndjson", "run" or "sakana"
  std::string value; ///< a folder, a file or a run; empty: the installation's cards
  std::string from;  ///< as it was typed
};

cli::option_spec from_option();

/// Without --from the installation's cards. Errors: "usage".
expected<std::vector<index_source>> sources_of(const cli::invocation& in);

/// Errors: "missing_file", "malformed_corpus", "licence_forbids".
expected<void> take_corpus(kernel_intake& to, const index_source& from);

/// The candidates of a run's accepted turns that may be shown: an example is part of what a model
/// learns from, so its licence must allow training; and what is held out is never shown.
expected<void> take_run(kernel_intake& to, const index_source& from, const std::string& root,
                        const licence_table& licences, const std::set<std::string>& accepted);

} // namespace kernelmill::commands

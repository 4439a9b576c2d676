#pragma once

// What the licences of a stored run allow an export, an index or a report to take from it.

#include <set>
#include <string>

#include "launch/cli/command.hpp"
#include "launch/node/run_rights.hpp"
#include "storage/export/permits.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

/// The ids that --accept-terms names. Errors: "unknown_terms".
expected<std::set<std::string>> accepted_terms(const cli::invocation& in, const licence_book& book);

/// The option itself.
cli::option_spec accept_terms_option();

/// By the run's manifest, whatever became of its tasks' files; of an older run without sources by
/// the ids of its tasks. Errors: those of reading the run's folder.
expected<exports::permits> permits_of(const run_directory& run, const licence_book& book,
                                      purpose wanted, const std::set<std::string>& accepted);

} // namespace kernelmill::commands

#pragma once

// The terms that a command is given, and what it says of what licences kept in.

#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launch/cli/command.hpp"
#include "launch/node/run_permits.hpp"
#include "storage/export/licences/licence_gate.hpp"

namespace kernelmill::commands {

/// The ids that --accept-terms names. Errors: "unknown_terms".
expected<std::set<std::string>> accepted_terms(const cli::invocation& in,
                                               const licence_table& licences);

/// The option itself.
cli::option_spec accept_terms_option();

/// [{"what", "groups", "reason", "hint"}]
nlohmann::ordered_json refusals_json(const exports::refusals& x);

/// The same on stderr, a line each.
void say_refusals(const exports::refusals& x);

} // namespace kernelmill::commands

#pragma once

// What is said of a completion's token ids wherever it is said: in traces and in exports.

#include <nlohmann/json_fwd.hpp>

#include "messages/lineage.capnp.h"

namespace kernelmill {

/// {"audit": "exact", "kept": 812, "position": 812, "route": "tokens"}.
nlohmann::ordered_json token_audit_json(wire::Completion::Reader x);

/// Adds `prompt_token_ids`, `token_ids` and `logprobs`, each where there are any. A log-probability
/// is written so that reading it as a double and rounding gives the same float, bit by bit; what
/// the server did not tell is null.
void add_token_lists(nlohmann::ordered_json& to, wire::Completion::Reader x);

/// [{"version", "start", "end"}, ...], half-open in tokens of the completion.
nlohmann::ordered_json weight_versions_json(wire::Completion::Reader x);

} // namespace kernelmill

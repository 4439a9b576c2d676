#pragma once

// Calls of tools for a terminal; texts of models are cleaned.

#include <string>

#include "messages/lineage.capnp.h"
#include "storage/artifacts.hpp"

namespace kernelmill::commands {

/// A text of the store, cleaned for a terminal; says so when it is gone.
std::string stored_text(const expected<std::string>& text);

/// The calls of a turn, one a line: tool, status, candidate before and after, steps, seconds on the
/// machine that ran kernels, and the first line of what the policy was told. Empty without calls.
std::string calls_table(wire::TurnRecord::Reader turn, const artifact_store& artifacts);

/// One call with its arguments and its observation.
std::string call_text(wire::CallRecord::Reader call, const artifact_store& artifacts, bool colour);

/// "success after 12 steps and 3.4 GPU seconds", a line; empty in mode `refine`.
std::string tool_end_text(wire::EpisodeRecord::Reader end);

} // namespace kernelmill::commands

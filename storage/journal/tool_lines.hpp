#pragma once

// INTERNAL to storage/: what a line of traces.jsonl says of a turn of mode `tools`; the inverse is
// in storage/restore/tool_lines.hpp.

#include <nlohmann/json_fwd.hpp>

#include "messages/lineage.capnp.h"
#include "storage/artifacts.hpp"

namespace kernelmill {

/// Adds `calls`, `candidates`, `marks`, `strategies` and `active`; nothing where a turn has none of
/// them. Errors: those of the artifacts.
expected<void> add_tool_parts(nlohmann::ordered_json& to, wire::TurnRecord::Reader turn,
                              const artifact_store& artifacts);

/// Adds `terminal_state`, `steps` and `gpu_seconds`; nothing in mode `refine`.
void add_tool_end(nlohmann::ordered_json& to, wire::EpisodeRecord::Reader end);

} // namespace kernelmill

#pragma once

// The graph of an episode's candidates as a document, for the terminal and the page.

#include <map>

#include "launch/analysis/watch/world.hpp"
#include "storage/lineage/candidate_choices.hpp"
#include "storage/lineage/candidate_graph.hpp"

namespace kernelmill::watch {

/// What people chose, by candidate (storage/lineage/candidate_choices.hpp).
using chosen = std::map<std::string, candidate_choice>;

/// Adds `candidates`, parents before their children, and `problems` of the records.
void add_candidates(json& to, const std::vector<Message<wire::Record>>& turns,
                    const chosen& choices);

/// One call of a tool, short: {id, tool, status, transition, input, output, steps, gpu_seconds,
/// seconds, hidden, first_line}. `observation` is the whole text.
json call_json(wire::CallRecord::Reader call, const std::string& observation);

/// Adds `terminal_state`, `steps` and `gpu_seconds` of an episode of mode `tools`.
void add_tool_end(json& to, wire::EpisodeRecord::Reader end);

} // namespace kernelmill::watch

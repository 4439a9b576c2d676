#pragma once

// The lines of a run's traces.jsonl and metrics.jsonl: what people and dashboards read, in the
// words that users of kernel_rl know. They say nothing that the lineage does not say. Every line
// has its `kind` and, as `timestamp`, the seconds since 1970 at which its record was committed; 0
// in records of versions that did not keep it.

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/lineage.capnp.h"
#include "storage/artifacts.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill {

/// Before 2 a line of traces.jsonl was a whole episode.
inline constexpr int line_schema_version = 2;

/// Of traces.jsonl, kind `turn`: prompt, response, evaluation, reward and its parts.
expected<nlohmann::ordered_json> turn_trace(wire::TurnRecord::Reader turn,
                                            const artifact_store& artifacts);

/// What stands between <think> and </think>; empty when nothing does.
std::string thought_in(const std::string& text);

/// Of traces.jsonl, kind `episode`: how it ended, its returns and readiness.
nlohmann::ordered_json episode_trace(wire::EpisodeRecord::Reader end);

/// Of metrics.jsonl, kind `turn`: its numbers, without texts.
nlohmann::ordered_json turn_metrics(wire::TurnRecord::Reader turn);

/// Of metrics.jsonl, kind `group`: of one that has ended; its `step` is the group's number.
/// Turns that the infrastructure lost count only as "infrastructure_turns"; those that asked for no
/// verdict only as "turns" and "open_turns", and their rewards in returns. TensorBoard's files say
/// the same (event_tags.hpp).
nlohmann::ordered_json group_metrics(const stored_group& group);

/// The values behind it, one for each turn or episode: "reward", "speedup" and "advantage".
using group_values = std::map<std::string, std::vector<double>>;
group_values values_of(const stored_group& group);

} // namespace kernelmill

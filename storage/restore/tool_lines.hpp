#pragma once

// INTERNAL to storage/restore/: the parts of a turn of mode `tools`, the inverse of
// storage/journal/tool_lines.hpp. Throws a std::exception as restored_turn does.

#include <nlohmann/json_fwd.hpp>

#include "messages/lineage.capnp.h"

namespace kernelmill {

class long_texts;

void read_tool_parts(wire::TurnRecord::Builder to, const nlohmann::ordered_json& line,
                     long_texts& texts);
void read_tool_end(wire::EpisodeRecord::Builder to, const nlohmann::ordered_json& line);

} // namespace kernelmill

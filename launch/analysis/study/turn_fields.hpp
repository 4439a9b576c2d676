#pragma once

// What `query` may ask of a turn: one table, which conditions, help, documents and errors come
// from. A turn becomes a row of JSON with the fields that are wanted and no others, so that a scan
// of a million turns pays for what it asks.

#include <map>
#include <string>
#include <vector>

#include "launch/analysis/watch/filter.hpp"
#include "messages/base/json_value.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill::study {

using json = nlohmann::ordered_json;

/// The run that turns are of.
struct turn_source {
  std::string run;
  const artifact_store* artifacts = nullptr;
  std::map<std::string, std::string> splits; ///< of tasks that have their own
  uint32_t shared_turns = 0;                 ///< of a fork's episodes
};

/// When a field is known: with its turn, when the turn's episode has ended, or its group.
enum class known_with : unsigned char { turn, episode, group };

struct turn_field {
  const char* name;
  const char* kind; ///< "flag", "number" or "text"
  const char* doc;
  known_with when;
};

/// All fields, in the order in which --json prints them.
const std::vector<turn_field>& turn_fields();

/// Names and flags for conditions.
const watch::condition_keys& turn_keys();

/// Default of --json: all fields but long texts.
const std::vector<std::string>& short_fields();

/// The table as lines of help.
std::string fields_help();

/// Adds the fields among `wanted` that a turn itself knows. Errors: those of the artifacts.
expected<void> add_fields(json& to, wire::TurnRecord::Reader turn, const turn_source& of,
                          const std::vector<std::string>& wanted);

/// Adds those that the end of its episode, or of its group, knows; `number` is the turn's.
void add_fields(json& to, wire::EpisodeRecord::Reader end, uint32_t number,
                const std::vector<std::string>& wanted);
void add_fields(json& to, wire::GroupRecord::Reader end, uint32_t member,
                const std::vector<std::string>& wanted);

} // namespace kernelmill::study

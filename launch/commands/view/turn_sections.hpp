#pragma once

// `show TURN --section NAME`: one part of a turn's record.

#include <string>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/evidence.hpp"
#include "messages/lineage.capnp.h"

namespace kernelmill::commands {

/// "build", "profile", ...
const std::vector<std::string>& turn_sections();

/// What a section needs besides the record.
struct sectioned_turn {
  wire::TurnRecord::Reader record;
  std::string name;                 ///< as users name it: "runs/first/g0.e0.t1"
  episode_evidence evidence;        ///< of its episode
  nlohmann::ordered_json readiness; ///< {"kind", "reasons"} of its episode; null: it has not ended
};

/// REQUIRES: `section` is one of turn_sections().
nlohmann::ordered_json section_json(const std::string& section, const sectioned_turn& x);
std::string section_text(const std::string& section, const sectioned_turn& x);

} // namespace kernelmill::commands

#pragma once

// The ledger of a reward: its parts in a turn, and their sums over an episode.

#include <string>

#include "messages/base/json_value.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::commands {

/// Parts with a weight or a value, one a line. Empty where nothing was paid.
std::string parts_table(wire::Verdict::Reader verdict);

/// The sum of each part over the turns of an episode, by name. A source that repeats an earlier one
/// has its parts and no reward, so the sum of all can be more than that of the rewards.
nlohmann::ordered_json part_sums(const stored_episode& x);

/// The same for a terminal; empty where nothing was paid.
std::string part_sums_table(const stored_episode& x);

} // namespace kernelmill::commands

#pragma once

// What differs between two episodes, or between two groups: their ends, their turns or members side
// by side, and their best turns in full.

#include "launch/analysis/study/turn_comparison.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::study {

/// Where records are from.
struct compared_source {
  std::string run; ///< its name
  const artifact_store* artifacts = nullptr;
  const json* config = nullptr;
};

/// The keys "values", "turns", "first_difference" (the number of the first turn whose code differs,
/// or that one of them lacks; null: none) and "best" (null when one has no turn).
/// Errors: those of the artifacts.
expected<json> compare_episodes(uint32_t group_a, const stored_episode& a,
                                const compared_source& of_a, uint32_t group_b,
                                const stored_episode& b, const compared_source& of_b);

/// The keys "values", "members" and "best", which compares the best turns of the best members.
expected<json> compare_groups(const stored_group& a, const compared_source& of_a,
                              const stored_group& b, const compared_source& of_b);

} // namespace kernelmill::study

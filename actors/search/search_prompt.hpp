#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "actors/search/searched_episode.hpp"

namespace kernelmill::search {

struct prompt_limits {
  uint32_t ledger = 12;         ///< candidates that the ledger lists
  uint32_t failed_siblings = 4; ///< that are told with the reason
  bool patches = false;         ///< offer an answer that is a change to the parent
};

/// What stands behind the task in the first prompt of an expansion: the ledger of what was tried;
/// then the parent's code, what became of it with its profile card, the changes to it that failed
/// and why, and what is asked for. `tried` are the finished generations; empty: nothing is said.
std::string search_prompt(std::span<const searched_episode> tried, std::optional<uint32_t> parent,
                          const prompt_limits& limits);

} // namespace kernelmill::search

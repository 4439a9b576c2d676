#pragma once

// What a search has tried so far, as plain values. One expansion is one episode of the search's
// run; the expansions that are chosen together are a generation, which is a group of the run.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelmill::search {

enum class node_state : unsigned char {
  verified, ///< accepted by governance
  failed,   ///< rejected: it does not compile, is wrong, or breaks a rule
  lost,     ///< nothing is known of it: a fault of a machine or a server
};

struct node {
  node_state state = node_state::lost;
  std::optional<uint32_t> parent; ///< position in the tree; none: made from the task alone
  /// Speedup over the task's baseline with its 95 % interval; 0: it was not timed.
  double low = 0, estimate = 0, high = 0;
  std::string sha256; ///< of the candidate; empty: the completion had none
  std::string niche;  ///< its behaviour, for MAP-Elites: search_niche.hpp
};

/// By ordinal: nodes[i] is of generation i / width, and parents come before their children.
using search_tree = std::vector<node>;

} // namespace kernelmill::search

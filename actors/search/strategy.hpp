#pragma once

// Which candidates a search improves next. A choice is a pure function of the settings and of the
// generations that have finished: a search that was killed chooses again what it had chosen, so
// nothing of a strategy is stored.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/search/search_tree.hpp"

namespace kernelmill::search {

enum class strategy_kind : unsigned char {
  best_of_n, ///< every expansion starts from the task alone
  random,    ///< from a verified candidate drawn at random, or from the task
  beam,      ///< from the fastest few
  islands,   ///< MAP-Elites over niches, on islands between which elites migrate
  tree,      ///< UCB on the upper bound of the speedup's interval
};

struct strategy_settings {
  strategy_kind kind = strategy_kind::tree;
  uint64_t seed = 1;
  uint32_t width = 8;     ///< expansions of a generation
  uint32_t beam = 4;      ///< candidates that `beam` keeps
  uint32_t islands = 2;   ///< of `islands`
  uint32_t migration = 4; ///< generations between two migrations
  /// Of `tree`: weight of the term for what was seldom tried, in doublings of speed.
  double exploration = 0.5;
  double fresh = 0.1; ///< probability that an expansion starts from the task alone
};

/// "best_of_n", "random", "beam", "islands", "tree"; nothing for other words.
std::optional<strategy_kind> strategy_of(std::string_view word);
const char* to_string(strategy_kind x) noexcept;

/// Where an expansion starts.
struct start {
  std::optional<uint32_t> parent; ///< position in the tree; none: the task alone

  bool operator==(const start&) const = default;
};

/// Chooses the `width` expansions of the next generation. REQUIRES: `finished` has complete
/// generations.
std::vector<start> choose(const strategy_settings& how, std::span<const node> finished);

/// The elites of one island: of each niche the position of its fastest verified node.
using island = std::map<std::string, uint32_t>;

/// The islands of `islands` after the last of `finished`, migrants among them. REQUIRES: `finished`
/// has complete generations.
std::vector<island> islands_of(const strategy_settings& how, std::span<const node> finished);

/// The node with the highest lower bound; among untimed ones the first verified. Nothing: none is
/// verified.
std::optional<uint32_t> best_of(std::span<const node> nodes);

} // namespace kernelmill::search

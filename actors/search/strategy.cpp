#include "actors/search/strategy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "messages/base/hash.hpp"

namespace kernelmill::search {

namespace {

constexpr std::array<std::pair<std::string_view, strategy_kind>, 5> strategy_words{{
    {"best_of_n", strategy_kind::best_of_n},
    {"random", strategy_kind::random},
    {"beam", strategy_kind::beam},
    {"islands", strategy_kind::islands},
    {"tree", strategy_kind::tree},
}};

/// Draws that depend on nothing but the seed and the expansion.
class draws {
public:
  draws(uint64_t seed, uint64_t ordinal) : at_(mix(seed, ordinal)) {
    // nop
  }

  uint64_t below(uint64_t n) { return next() % n; }
  bool happens(double probability) {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

private:
  uint64_t next() { return at_ = mix(at_, 1); }

  uint64_t at_;
};

/// Verified nodes, the first of each candidate, by lower bound; equal ones in their order.
std::vector<uint32_t> fastest_first(std::span<const node> nodes) {
  std::vector<uint32_t> result;
  std::set<std::string> seen;
  for (uint32_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].state == node_state::verified && seen.insert(nodes[i].sha256).second)
      result.push_back(i);
  std::stable_sort(result.begin(), result.end(),
                   [&](uint32_t a, uint32_t b) { return nodes[a].low > nodes[b].low; });
  return result;
}

/// Failed candidates that nothing was made from yet, the newest first: their errors can be mended.
std::vector<uint32_t> to_mend(std::span<const node> nodes) {
  std::set<uint32_t> parents;
  for (const auto& x : nodes)
    if (x.parent) parents.insert(*x.parent);
  std::vector<uint32_t> result;
  for (uint32_t i = static_cast<uint32_t>(nodes.size()); i-- > 0;)
    if (nodes[i].state == node_state::failed && !nodes[i].sha256.empty() && !parents.contains(i))
      result.push_back(i);
  return result;
}

/// As long as nothing is verified: every other expansion mends one that failed.
std::vector<start> without_verified(const strategy_settings& how, std::span<const node> nodes) {
  auto failed = to_mend(nodes);
  std::vector<start> result(how.width);
  for (uint32_t i = 1, next = 0; i < how.width && next < failed.size(); i += 2)
    result[i].parent = failed[next++];
  return result;
}

std::vector<start> choose_random(const strategy_settings& how, std::span<const node> nodes) {
  auto verified = fastest_first(nodes);
  std::vector<start> result(how.width);
  for (uint32_t i = 0; i < how.width; ++i) {
    draws drawn{how.seed, nodes.size() + i};
    if (!drawn.happens(how.fresh)) result[i].parent = verified[drawn.below(verified.size())];
  }
  return result;
}

std::vector<start> choose_beam(const strategy_settings& how, std::span<const node> nodes) {
  auto kept = fastest_first(nodes);
  if (kept.size() > how.beam) kept.resize(how.beam);
  std::vector<start> result(how.width);
  for (uint32_t i = 0, next = 0; i < how.width; ++i) {
    draws drawn{how.seed, nodes.size() + i};
    if (!drawn.happens(how.fresh)) result[i].parent = kept[next++ % kept.size()];
  }
  return result;
}

// -- islands --------------------------------------------------------------------------------------

void offer(island& to, std::span<const node> nodes, uint32_t i) {
  auto [at, added] = to.emplace(nodes[i].niche, i);
  if (!added && nodes[i].low > nodes[at->second].low) at->second = i;
}

std::optional<uint32_t> fastest(const island& x, std::span<const node> nodes) {
  std::optional<uint32_t> result;
  for (const auto& [niche, i] : x)
    if (!result || nodes[i].low > nodes[*result].low) result = i;
  return result;
}

std::vector<start> choose_on_islands(const strategy_settings& how, std::span<const node> nodes) {
  auto all = islands_of(how, nodes);
  std::vector<start> result(how.width);
  for (uint32_t i = 0; i < how.width; ++i) {
    const auto& elites = all[i % how.islands];
    draws drawn{how.seed, nodes.size() + i};
    if (elites.empty() || drawn.happens(how.fresh)) continue;
    // A tournament of two: every niche has a chance, the fast ones a greater one.
    auto one = std::next(elites.begin(), static_cast<long>(drawn.below(elites.size())))->second;
    auto other = std::next(elites.begin(), static_cast<long>(drawn.below(elites.size())))->second;
    result[i].parent = nodes[other].low > nodes[one].low ? other : one;
  }
  return result;
}

// -- tree -----------------------------------------------------------------------------------------

/// A candidate that can be improved, or the task itself.
struct arm {
  start from;
  double value = 0; ///< upper bound of its speedup, in doublings
  double visits = 0;
};

double doublings(double speedup) {
  return speedup > 0 ? std::log2(speedup) : 0;
}

// Expansions of one generation are chosen together: each counts as a visit for the next choice.
std::vector<start> choose_by_bound(const strategy_settings& how, std::span<const node> nodes) {
  std::vector<arm> arms;
  std::map<std::string, size_t> arm_of; // by candidate: children of equal ones are its children
  for (auto i : fastest_first(nodes)) {
    arm_of[nodes[i].sha256] = arms.size();
    arms.push_back({{i}, doublings(nodes[i].high), 0});
  }
  for (const auto& x : nodes) {
    if (!x.parent || x.state == node_state::lost) continue;
    if (auto known = arm_of.find(nodes[*x.parent].sha256); known != arm_of.end())
      ++arms[known->second].visits;
  }
  std::vector<start> result(how.width);
  for (uint32_t i = 0; i < how.width; ++i) {
    draws drawn{how.seed, nodes.size() + i};
    if (drawn.happens(how.fresh)) continue;
    auto total = std::log(1.0 + static_cast<double>(nodes.size() + i));
    auto bound = [&](const arm& x) {
      return x.value + how.exploration * std::sqrt(total / (1 + x.visits));
    };
    auto best = std::max_element(arms.begin(), arms.end(),
                                 [&](const arm& a, const arm& b) { return bound(a) < bound(b); });
    result[i] = best->from;
    ++best->visits;
  }
  return result;
}

} // namespace

std::optional<strategy_kind> strategy_of(std::string_view word) {
  for (const auto& [name, kind] : strategy_words)
    if (name == word) return kind;
  return std::nullopt;
}

const char* to_string(strategy_kind x) noexcept {
  for (const auto& [name, kind] : strategy_words)
    if (kind == x) return name.data();
  return "";
}

std::vector<start> choose(const strategy_settings& how, std::span<const node> finished) {
  if (how.kind == strategy_kind::best_of_n || finished.empty())
    return std::vector<start>(how.width);
  if (!best_of(finished)) return without_verified(how, finished);
  switch (how.kind) {
    case strategy_kind::random: return choose_random(how, finished);
    case strategy_kind::beam: return choose_beam(how, finished);
    case strategy_kind::islands: return choose_on_islands(how, finished);
    default: return choose_by_bound(how, finished);
  }
}

// Replays all generations. At every migration each island gets the fastest elite of the one
// before it.
std::vector<island> islands_of(const strategy_settings& how, std::span<const node> nodes) {
  std::vector<island> result(how.islands);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].state == node_state::verified)
      offer(result[i % how.width % how.islands], nodes, i);
    bool ends = (i + 1) % how.width == 0;
    if (!ends || how.migration == 0 || (i + 1) / how.width % how.migration != 0) continue;
    std::vector<std::optional<uint32_t>> migrants;
    for (const auto& x : result) migrants.push_back(fastest(x, nodes));
    for (uint32_t to = 0; to < how.islands; ++to)
      if (auto from = migrants[(to + how.islands - 1) % how.islands])
        offer(result[to], nodes, *from);
  }
  return result;
}

std::optional<uint32_t> best_of(std::span<const node> nodes) {
  auto order = fastest_first(nodes);
  return order.empty() ? std::nullopt : std::optional{order.front()};
}

} // namespace kernelmill::search

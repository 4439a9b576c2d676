#pragma once

// A stand-in for a task, a policy and a clock, with a known optimum: what strategies of a search
// are compared on. A kernel is a choice of twelve optimisations. Each changes the speed, and pairs
// of them more or less than each alone, so that single steps lead to local optima. From the task
// the policy turns on up to three of them, from a parent it changes one or two; 3 answers in 10
// fail, and times are off by 2 %. The optimum is found by trying all 4,096.

#include <cstdint>
#include <vector>

#include "actors/search/strategy.hpp"

namespace kernelmill::oracles {

class landscape {
public:
  explicit landscape(uint64_t seed);

  /// Speedup over the task's baseline, in doublings.
  double doublings(uint32_t kernel) const;
  double optimum() const noexcept { return optimum_; }

  /// What becomes of the expansion with this ordinal. `parent`: null: from the task alone.
  search::node expand(uint32_t ordinal, const search::node* parent) const;

private:
  static constexpr unsigned options = 12;

  uint64_t seed_;
  double alone_[options];
  double together_[options][options];
  double optimum_ = 0;
};

/// Searches with so many turns. Element i: the doublings of the best kernel after i generations, as
/// a share of the optimum's; by the true speed of what the search itself takes for its best.
std::vector<double> search_shares(const landscape& land, const search::strategy_settings& how,
                                  uint32_t turns);

} // namespace kernelmill::oracles

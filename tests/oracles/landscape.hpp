#pragma once

// A stand-in for a task, a policy and a clock, with a known optimum: what strategies of a search
// are compared on.

#include <cstdint>
#include <vector>

#include "actors/search/strategy.hpp"

namespace kernelmill::oracles {

class landscape {
public:
  virtual ~landscape() = default;

  /// Speed over that of the kernel that everything begins with, in doublings.
  virtual double doublings(uint32_t kernel) const = 0;
  virtual double optimum() const = 0;

  /// What becomes of the expansion with this ordinal. `parent`: null: from the task alone.
  virtual search::node expand(uint32_t ordinal, const search::node* parent) const = 0;
};

/// A kernel is a choice of twelve optimisations. Each changes the speed, and pairs of them more or
/// less than each alone, so that single steps lead to local optima. From the task the policy turns
/// on up to three of them, from a parent it changes one or two; 3 answers in 10 fail, and times are
/// off by 2 %. The optimum is found by trying all 4,096.
class drawn_landscape : public landscape {
public:
  explicit drawn_landscape(uint64_t seed);

  double doublings(uint32_t kernel) const override;
  double optimum() const override { return optimum_; }
  search::node expand(uint32_t ordinal, const search::node* parent) const override;

private:
  static constexpr unsigned options = 12;

  uint64_t seed_;
  double alone_[options];
  double together_[options][options];
  double optimum_ = 0;
};

/// From 0 to 1, of 64 random bits.
double uniform_of(uint64_t bits);

/// Of mean 0 and deviation 1, drawn by two numbers.
double normal_of(uint64_t a, uint64_t b);

/// Searches with so many turns. Element i: the doublings of the best kernel after i generations, as
/// a share of the optimum's; by the true speed of what the search itself takes for its best.
std::vector<double> search_shares(const landscape& land, const search::strategy_settings& how,
                                  uint32_t turns);

} // namespace kernelmill::oracles

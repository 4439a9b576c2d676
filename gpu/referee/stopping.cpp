#include "gpu/referee/stopping.hpp"

#include <algorithm>
#include <cmath>

#include "gpu/referee/paid_kinds.hpp"

namespace kernelmill {

namespace {

// Whatever disturbs one of the two for a tenth of a second is in three short blocks. To give up
// saves time, so it waits until much of it is gone.
constexpr size_t blocks_before_giving_up = 3;
constexpr double budget_before_giving_up = 0.5;
constexpr double hopeless_speedup = 0.5;

double largest_ratio(const std::vector<timed_block>& blocks) {
  auto ratios = log_ratios(blocks);
  return *std::max_element(ratios.begin(), ratios.end());
}

} // namespace

std::string stop_reason(const std::vector<timed_block>& blocks, const stopping_rule& rule,
                        double elapsed_seconds) {
  if (blocks.empty() || !rule.all_met) return {};
  if (blocks.size() >= blocks_before_giving_up &&
      elapsed_seconds >= budget_before_giving_up * rule.budget_seconds &&
      std::exp(largest_ratio(blocks)) < hopeless_speedup)
    return hopeless;
  if (blocks.size() >= rule.max_blocks) return "the most blocks";
  if (elapsed_seconds >= rule.budget_seconds) return "the time budget is spent";
  if (blocks.size() < rule.min_blocks) return {};
  if (estimate_speedup(blocks).relative_half_width() < rule.half_width) return narrow_enough;
  return {};
}

std::string stop_reason_by_kind(const std::vector<kind_blocks>& kinds, const stopping_rule& rule,
                                double elapsed_seconds) {
  std::vector<timed_block> all;
  for (const auto& x : kinds) all.insert(all.end(), x.blocks.begin(), x.blocks.end());
  auto reason = stop_reason(all, rule, elapsed_seconds);
  if (!reason.empty() || !rule.all_met || all.size() < rule.min_blocks) return reason;
  auto paid = pay_slowest(kinds);
  if (!paid.in_doubt && paid.speedup.relative_half_width() < rule.half_width) return narrow_enough;
  return {};
}

} // namespace kernelmill

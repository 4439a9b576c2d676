#include "actors/governance/bias.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace kernelmill {

namespace {

constexpr const char* factor_names[] = {"task", "language", "length"};

// A bin for each doubling; most answers have between one and sixteen KiB.
std::string length_level(uint64_t bytes) {
  constexpr uint64_t most = 32;
  auto kib = bytes >> 10;
  if (kib == 0) return "below 1 KiB";
  if (kib >= most) return fmt::format("{} KiB or more", most);
  auto low = std::bit_floor(kib);
  return fmt::format("{} to {} KiB", low, 2 * low);
}

double log_choose(uint64_t n, uint64_t k) {
  auto gamma = [](uint64_t x) { return std::lgamma(static_cast<double>(x) + 1); };
  return gamma(n) - gamma(k) - gamma(n - k);
}

} // namespace

double chance_of_losses(const loss_ledger::count& level, const loss_ledger::count& all) {
  auto kept = all.turns - all.lost;
  auto most = std::min(level.turns, all.lost);
  double result = 0;
  for (auto lost = level.lost; lost <= most; ++lost) {
    if (level.turns - lost > kept) continue;
    result += std::exp(log_choose(all.lost, lost) + log_choose(kept, level.turns - lost) -
                       log_choose(all.turns, level.turns));
  }
  return std::min(result, 1.0);
}

void loss_ledger::add(size_t factor, std::string_view level, bool lost) {
  for (auto* x : {&counts_[factor][std::string{level}], &all_[factor]}) {
    ++x->turns;
    x->lost += lost;
  }
}

void loss_ledger::note(std::string_view task, std::string_view language, uint64_t length,
                       bool lost) {
  add(0, task, lost);
  add(1, language.empty() ? "none" : language, lost);
  add(2, length_level(length), lost);
}

void loss_ledger::note_unanswered(std::string_view task) {
  add(0, task, true);
}

std::vector<loss_ledger::row> loss_ledger::suspects() const {
  std::vector<row> result;
  size_t comparisons = 0;
  for (const auto& levels : counts_) comparisons += levels.size() > 1 ? levels.size() : 0;
  for (size_t i = 0; i < factors; ++i) {
    if (counts_[i].size() < 2 || all_[i].lost < least_lost) continue;
    for (const auto& [level, here] : counts_[i]) {
      auto p = chance_of_losses(here, all_[i]) * static_cast<double>(comparisons);
      if (p < significance) result.push_back({factor_names[i], level, here, all_[i], p});
    }
  }
  std::sort(result.begin(), result.end(), [](const row& a, const row& b) { return a.p < b.p; });
  return result;
}

std::vector<std::string> loss_ledger::alarms() const {
  std::vector<std::string> result;
  for (const auto& x : suspects())
    result.push_back(fmt::format(
        "lost turns go with the {} ({}): {} of {} turns there were lost to our own faults, {} of "
        "{} elsewhere (p = {:.1g}, corrected for all comparisons)",
        x.factor, x.level, x.here.lost, x.here.turns, x.all.lost - x.here.lost,
        x.all.turns - x.here.turns, x.p));
  return result;
}

} // namespace kernelmill

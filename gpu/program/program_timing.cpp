#include "gpu/program/program_timing.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kernelmill {

namespace {

struct both_times {
  double baseline;
  double candidate;
};

// Samples in blocks of two: of one the baseline ran first, of the other the candidate.
speedup_interval interval_of(const std::vector<both_times>& x) {
  std::vector<timed_block> blocks;
  for (size_t i = 0; i + 1 < x.size(); i += 2)
    blocks.push_back({{x[i].baseline, x[i + 1].baseline}, {x[i].candidate, x[i + 1].candidate}, i});
  return estimate_speedup(blocks);
}

std::string shown(const speedup_interval& x) {
  return fmt::format("{:.3g}x ({:.3g} to {:.3g})", x.estimate, x.low, x.high);
}

} // namespace

program_payment pay_program(const std::vector<program_sample>& samples, bool inside) {
  std::vector<both_times> walls, claims, paid;
  for (const auto& x : samples) {
    walls.push_back({x.wall_baseline, x.wall_candidate});
    if (!inside) continue;
    claims.push_back({x.inside_baseline, x.inside_candidate});
    double confirmed = x.inside_baseline - (x.wall_baseline - x.wall_candidate);
    paid.push_back({x.inside_baseline, std::max(x.inside_candidate, confirmed)});
  }
  program_payment result;
  result.outside = interval_of(walls);
  const auto& paying = inside ? paid : walls;
  std::vector<double> of_baseline, of_candidate;
  for (const auto& x : paying) {
    of_baseline.push_back(x.baseline);
    of_candidate.push_back(x.candidate);
  }
  result.baseline_seconds = median(std::move(of_baseline));
  result.candidate_seconds = median(std::move(of_candidate));
  if (!inside) {
    result.inside = result.paid = result.outside;
    return result;
  }
  result.inside = interval_of(claims);
  result.paid = interval_of(paid);
  result.note = "the clock inside says " + shown(result.inside) + ", the processes' times " +
                shown(result.outside);
  if (result.inside.estimate <= 1) {
    // A claim to be slow is no gain, and needs no proof.
    result.paid = result.inside;
  } else if (result.paid.low <= 1 && result.paid.high >= 1) {
    result.confirmed = false;
    result.paid = {1, std::min(1.0, result.inside.low), 1};
    result.candidate_seconds = result.baseline_seconds;
    result.note += "; the gain is not confirmed, and is rewarded as 1x";
  }
  return result;
}

} // namespace kernelmill

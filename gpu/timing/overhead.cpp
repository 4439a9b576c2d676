#include "gpu/timing/overhead.hpp"

#include <algorithm>

#include "gpu/timing/thresholds.hpp"
#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill::timing {

namespace {

constexpr double seldom = 0.95;

struct medians_of {
  double inside = 0;
  double besides = 0;
  bool any = false;
};

template <class Which>
medians_of of(const std::vector<batch_sample>& all, Which which) {
  std::vector<double> inside;
  std::vector<double> besides;
  for (const auto& x : all) {
    if (x.disturbed || !which(x)) continue;
    inside.push_back(x.inside);
    besides.push_back(x.out - x.inside);
  }
  bool any = !inside.empty();
  return {median(std::move(inside)), median(std::move(besides)), any};
}

bool is_single(const batch_sample& x) {
  return x.calls <= 1;
}

double seldom_exceeded(std::vector<double> x) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  auto at = static_cast<size_t>(seldom * static_cast<double>(x.size()));
  return x[std::min(at, x.size() - 1)];
}

} // namespace

// A single call may be much shorter than what is subtracted.
double overhead::calls(const batch_sample& x) const {
  double least = is_single(x) ? shortest_call : least_share * x.out;
  return std::max((x.out - fixed) / (1 + growth), least);
}

overhead fit_overhead(const std::vector<batch_sample>& baseline) {
  auto one = of(baseline, is_single);
  auto many = of(baseline, [](const batch_sample& x) { return !is_single(x); });
  if (!one.any) return {many.besides, 0};
  if (!many.any || many.inside <= one.inside) return {one.besides, 0};
  double growth =
      std::clamp((many.besides - one.besides) / (many.inside - one.inside), 0.0, most_growth);
  return {many.besides - growth * many.inside, growth};
}

overhead believed(const overhead& now, const overhead& before) {
  return {std::min(now.fixed, overhead_growth * before.fixed + overhead_slack),
          std::min(now.growth, overhead_growth * before.growth + 1e-3)};
}

double calibration::fill_of(const batch_order& order) const {
  if (order.form == batch_form::single) return fill_single;
  double sum = 0;
  for (size_t pattern : order.patterns) sum += fills[std::min(pattern, fills.size() - 1)];
  return sum / static_cast<double>(order.patterns.size());
}

calibration calibrated(const std::vector<batch_sample>& baseline) {
  calibration result;
  result.besides = fit_overhead(baseline);
  std::vector<double> fills;
  std::vector<double> single_fills;
  for (const auto& x : baseline) {
    (is_single(x) ? single_fills : fills).push_back(x.fill);
    if (x.disturbed) continue;
    if (is_single(x)) {
      if (result.call_alone == 0 || x.inside < result.call_alone) result.call_alone = x.inside;
      continue;
    }
    double call = x.inside / x.calls;
    if (result.call == 0 || call < result.call) result.call = call;
  }
  if (result.call == 0)
    for (const auto& x : baseline)
      if (result.call == 0 || x.inside < result.call) result.call = x.inside;
  result.fills = {seldom_exceeded(fills.empty() ? single_fills : std::move(fills))};
  result.fill_single = seldom_exceeded(std::move(single_fills));
  return result;
}

} // namespace kernelmill::timing

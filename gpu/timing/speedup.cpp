#include "gpu/timing/speedup.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "gpu/timing/thresholds.hpp"

namespace kernelmill::timing {

namespace {

double deviation_of(const std::vector<double>& x) {
  if (x.size() < 2) return 0;
  double mean = 0;
  for (double value : x) mean += value;
  mean /= static_cast<double>(x.size());
  double squares = 0;
  for (double value : x) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(x.size() - 1));
}

// A speedup holds for calls alone, too, beyond what a single call is unsure of; of short calls
// without that, but who is as fast as the baseline is not called slower by it.
double most_by_single(const form_result& single) {
  double seconds = single.candidate_seconds;
  double error = single_error + single_standard_errors * single.deviation * seconds /
                                    std::sqrt(static_cast<double>(single.pairs));
  double shown = single.speedup.estimate;
  double unsure = shown * seconds / std::max(seconds - error, least_share * seconds);
  return seconds < shortest_forgiven ? std::max(shown, std::min(unsure, 1.0)) : unsure;
}

// What batches of several patterns show, give or take their error. Of a candidate's own noise no
// more is believed than a machine has.
double most_by_mixed(const form_result& mixed, const machine_noise& noise) {
  double deviation = std::min(mixed.deviation, noise.most_deviation);
  double error = mixed_standard_errors * deviation / std::sqrt(static_cast<double>(mixed.pairs));
  return mixed.speedup.estimate * std::exp(error);
}

// What calls that are kept apart show, where they take longer than their order explains.
std::optional<double> most_by_apart(const form_result& own, const form_result& apart) {
  double cost = std::clamp(apart.baseline_seconds - own.baseline_seconds, 0.0, most_apart_cost);
  double alone = apart.candidate_seconds - cost;
  if (alone <= (1 + apart_share) * own.candidate_seconds + apart_floor) return std::nullopt;
  return own.baseline_seconds / alone;
}

speedup_interval scaled(const speedup_interval& x, double by) {
  return {x.estimate * by, x.low * by, x.high * by};
}

speedup_interval at_most(const speedup_interval& x, double most) {
  if (x.estimate <= most) return x;
  return {most, x.low * most / x.estimate, x.high};
}

} // namespace

double pair_times::log_ratio() const {
  return std::log(baseline / candidate);
}

pair_times times_of(const batch_pair& pair, const overhead& besides, const calibration& before) {
  const auto& c = pair.candidate;
  const auto& b = pair.baseline;
  double usual = before.fill_of(pair.order);
  // What the baseline's inputs take now counts little more than what they took before: a candidate
  // may have left work on the GPU.
  double allowed = std::max(usual, std::min(b.fill, believed_slowdown * usual)) + fill_slack;
  double late = std::max(0.0, c.fill - allowed);
  double call = b.inside / std::max(b.calls, 1u);
  bool capped = pair.order.form == batch_form::nominal && before.call > 0;
  if (capped) call = std::min(call, believed_slowdown * before.call);
  if (pair.order.form == batch_form::single && before.call > 0 && before.call_alone > 0)
    call = std::min(call, believed_slowdown * before.call_alone + single_error);
  return {call, (besides.calls(c) + late) / std::max(c.calls, 1u)};
}

std::optional<form_result> result_of(const std::vector<pair_times>& pairs) {
  if (pairs.empty()) return std::nullopt;
  std::vector<timed_block> blocks;
  std::vector<double> baseline;
  std::vector<double> candidate;
  std::vector<double> ratios;
  for (const auto& x : pairs) {
    blocks.push_back({{x.baseline, x.baseline}, {x.candidate, x.candidate}});
    baseline.push_back(x.baseline);
    candidate.push_back(x.candidate);
    ratios.push_back(x.log_ratio());
  }
  form_result result;
  result.speedup = estimate_speedup(blocks);
  result.baseline_seconds = median(std::move(baseline));
  result.candidate_seconds = median(std::move(candidate));
  result.deviation = deviation_of(ratios);
  result.pairs = pairs.size();
  return result;
}

bool seems_slower(const pair_times& mixed, const form_result& own, double margin,
                  const machine_noise& noise) {
  double by = std::log(own.speedup.estimate) - mixed.log_ratio();
  return by > margin && by > standard_errors * std::min(own.deviation, noise.most_deviation);
}

std::optional<paid_result> pay(const std::vector<batch_pair>& pairs, const calibration& before,
                               size_t confirming) {
  std::vector<batch_sample> baseline;
  for (const auto& x : pairs) {
    bool own = x.order.form == batch_form::nominal || x.order.form == batch_form::single;
    if (own) baseline.push_back(x.baseline);
  }
  if (baseline.empty()) return std::nullopt;
  paid_result result;
  result.besides = believed(fit_overhead(baseline), before.besides);
  std::vector<pair_times> nominal;
  std::vector<pair_times> mixed;
  std::vector<pair_times> single;
  std::vector<pair_times> apart;
  std::map<size_t, std::vector<pair_times>> alone;
  std::vector<double> calls;
  for (const auto& x : pairs) {
    auto times = times_of(x, result.besides, before);
    switch (x.order.form) {
      case batch_form::nominal:
        nominal.push_back(times);
        calls.push_back(x.baseline.inside / std::max(x.baseline.calls, 1u));
        break;
      case batch_form::mixed: mixed.push_back(times); break;
      case batch_form::single: single.push_back(times); break;
      case batch_form::apart: apart.push_back(times); break;
      case batch_form::pattern: alone[x.order.patterns.front()].push_back(times); break;
    }
  }
  auto own = result_of(nominal);
  if (!own) return std::nullopt;
  result.paid = *own;
  result.baseline_slower =
      before.call > 0 && median(std::move(calls)) > believed_slowdown * before.call;
  if (auto several = result_of(mixed))
    result.paid.speedup = at_most(result.paid.speedup, most_by_mixed(*several, before.noise));
  for (const auto& [pattern, taken] : alone) {
    auto found = result_of(taken);
    if (taken.size() < confirming || !found) continue;
    double by = std::log(own->speedup.estimate / found->speedup.estimate);
    if (by <= slower_pattern || found->speedup.estimate >= result.paid.speedup.estimate) continue;
    result.paid = *found;
    if (found->pairs == 1) // which has no interval of its own
      result.paid.speedup = scaled(own->speedup, found->speedup.estimate / own->speedup.estimate);
    result.slow_pattern = pattern;
    result.times_slower = std::exp(by);
  }
  if (auto kept = result_of(apart)) {
    result.overlapping = most_by_apart(*own, *kept);
    if (result.overlapping) result.paid.speedup = at_most(result.paid.speedup, *result.overlapping);
  }
  if (auto one = result_of(single)) {
    result.single = one->speedup;
    double most = most_by_single(*one);
    result.limited_by_single = result.paid.speedup.estimate > most;
    result.paid.speedup = at_most(result.paid.speedup, most);
  }
  double of_processes =
      std::hypot(before.noise.of_processes, before.noise.of_calls / result.paid.candidate_seconds,
                 before.noise.of_calls / result.paid.baseline_seconds);
  result.paid.speedup = widened(result.paid.speedup, of_processes);
  return result;
}

} // namespace kernelmill::timing

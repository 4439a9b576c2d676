#include "gpu/referee/timing_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace kernelmill {

namespace {

constexpr const char* narrow_enough = "the interval is narrow enough";
constexpr size_t blocks_before_giving_up = 3;
constexpr double hopeless_speedup = 0.5;
constexpr size_t fewest_for_order = 4; // blocks
constexpr double least_slowed = 0.01;  // of a speedup

double median_in_place(std::vector<double>& x) {
  auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  if (x.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(x.begin(), middle)) / 2;
}

std::vector<double> log_ratios(const std::vector<timed_block>& blocks) {
  std::vector<double> result;
  for (const auto& x : blocks) result.push_back(log_ratio(x));
  return result;
}

// Student's t for a two-sided 95 % interval, by degrees of freedom.
constexpr double t_quantile[] = {0, 12.706, 4.303, 3.182, 2.776};

// With fewer values than this, even the full range of them is no 95 % interval.
constexpr size_t fewest_for_ranks = 6;

// How many of the sorted Walsh averages lie outside the interval at each end: the signed-rank
// statistic of n values is at most that, less one, with a probability of up to 2.5 %.
size_t left_out(size_t n) {
  std::vector<double> ways(n * (n + 1) / 2 + 1, 0); // of choosing ranks 1..n with that sum
  ways[0] = 1;
  for (size_t rank = 1; rank <= n; ++rank)
    for (size_t sum = ways.size(); sum-- > rank;) ways[sum] += ways[sum - rank];
  double probability = 0;
  for (size_t sum = 0; sum < ways.size(); ++sum) {
    probability += std::exp2(-static_cast<double>(n)) * ways[sum];
    if (probability > 0.025) return sum;
  }
  return ways.size();
}

std::vector<double> walsh_averages(const std::vector<double>& x) {
  std::vector<double> result;
  result.reserve(x.size() * (x.size() + 1) / 2);
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = i; k < x.size(); ++k) result.push_back((x[i] + x[k]) / 2);
  std::sort(result.begin(), result.end());
  return result;
}

double half_width_by_t(const std::vector<double>& x, double mean) {
  double squares = 0;
  for (double value : x) squares += (value - mean) * (value - mean);
  auto n = static_cast<double>(x.size());
  return t_quantile[x.size() - 1] * std::sqrt(squares / (n - 1) / n);
}

// -- kinds of contents --------------------------------------------------------------------------

constexpr double least_difference = 0.05; // of speedups of two kinds, in logarithms
constexpr double standard_errors = 4;     // before a kind is called slower
constexpr double doubted_errors = 1.5;    // before it is timed again
constexpr double told_apart = 0.1;        // of speedups, in logarithms
constexpr size_t fewest_neighbours = 4;   // to know the noise
constexpr double believed_noise = 2;      // times the baseline's
constexpr size_t blocks_of_a_pace = 3;

double log_reference(const timed_block& x) {
  return (std::log(x.reference[0]) + std::log(x.reference[1])) / 2;
}

// Standard deviation of something of a block, from neighbours of one kind, so that neither
// differences between kinds nor slow drift are taken for noise.
std::optional<double> deviation(const std::vector<kind_blocks>& kinds,
                                double (*of)(const timed_block&)) {
  std::vector<double> steps;
  for (const auto& kind : kinds)
    for (size_t i = 1; i < kind.blocks.size(); ++i)
      steps.push_back(std::fabs(of(kind.blocks[i]) - of(kind.blocks[i - 1])));
  if (steps.size() < fewest_neighbours) return std::nullopt;
  return of_a_normal * median_in_place(steps) / std::sqrt(2.0);
}

// Of the logarithm of a speedup. A candidate that is now faster, now slower would hide behind its
// own noise what it is slower on some contents. So there is no more than the baseline's shows: as
// many seconds, and twice that.
std::optional<double> noise_of(const std::vector<kind_blocks>& kinds) {
  auto seen = deviation(kinds, log_ratio);
  auto reference = deviation(kinds, log_reference);
  if (!seen || !reference) return std::nullopt;
  std::vector<double> speedups;
  for (const auto& kind : kinds)
    for (const auto& x : kind.blocks) speedups.push_back(log_ratio(x));
  double shorter = std::max(1.0, std::exp(median_in_place(speedups)));
  return std::min(*seen, believed_noise * *reference * shorter);
}

// Of what the medians of so many values differ by.
double error_between(size_t x, size_t others, double noise) {
  return of_a_median * noise *
         std::sqrt(1.0 / static_cast<double>(x) + 1.0 / static_cast<double>(others));
}

// How much slower `x` is than `others`, in logarithms; nothing where that may be noise.
std::optional<double> behind(const std::vector<double>& x, const std::vector<double>& others,
                             double noise, double errors = standard_errors) {
  double by = median(others) - median(x);
  double error = error_between(x.size(), others.size(), noise);
  if (by <= std::max(std::log1p(least_difference), errors * error)) return std::nullopt;
  return by;
}

// Of the blocks of a kind.
struct kind_logs {
  std::vector<double> ratios; // of speedups
  std::vector<double> own;    // of the candidate's seconds, by the machine's pace at that moment
};

// What the baseline took on the task's own contents in the blocks next to a place: a machine has
// now one clock, now another, a third slower, and kinds that are timed at different moments would
// look different by that.
double pace_at(size_t place, const std::vector<timed_block>& own) {
  auto off = [&](const timed_block& x) {
    return x.place > place ? x.place - place : place - x.place;
  };
  std::vector<const timed_block*> near;
  for (const auto& x : own) near.push_back(&x);
  auto count = std::min(near.size(), blocks_of_a_pace);
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end(),
                    [&](auto* a, auto* b) {
                      return std::pair{off(*a), a->place} < std::pair{off(*b), b->place};
                    });
  std::vector<double> logs;
  for (size_t i = 0; i < count; ++i) logs.push_back(log_reference(*near[i]));
  return median(logs);
}

std::vector<kind_logs> logs_of(const std::vector<kind_blocks>& kinds) {
  std::vector<kind_logs> result(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i)
    for (const auto& x : kinds[i].blocks) {
      result[i].ratios.push_back(log_ratio(x));
      result[i].own.push_back((std::log(x.candidate[0]) + std::log(x.candidate[1])) / 2 -
                              pace_at(x.place, kinds.front().blocks));
    }
  return result;
}

// Those of several kinds together.
std::vector<double> joined(const std::vector<kind_logs>& all, const std::vector<size_t>& which,
                           std::vector<double> kind_logs::*values) {
  std::vector<double> result;
  for (size_t i : which) {
    const auto& x = all[i].*values;
    result.insert(result.end(), x.begin(), x.end());
  }
  return result;
}

// Whether the candidate itself takes longer on a kind than on others: where its baseline is faster
// there, that is no shortcut of the candidate's.
bool takes_longer(const std::vector<kind_logs>& all, size_t which,
                  const std::vector<size_t>& others) {
  return median(all[which].own) - median(joined(all, others, &kind_logs::own)) >
         std::log1p(least_difference);
}

// Both of the same two: less of a speedup, and a candidate that takes longer.
std::optional<double> slower_than(const std::vector<kind_logs>& all, size_t which,
                                  const std::vector<size_t>& others, double noise, double errors) {
  auto theirs = joined(all, others, &kind_logs::ratios);
  if (all[which].ratios.empty() || theirs.empty() || !takes_longer(all, which, others))
    return std::nullopt;
  return behind(all[which].ratios, theirs, noise, errors);
}

// With what a kind is compared: with all others, and with each that has blocks enough, for where
// most kinds are slow and one is fast, each slow one is like most others. What is paid is the
// task's own kind: one on which the candidate is plainly faster than there makes no other slow.
std::vector<std::vector<size_t>> compared_with(const std::vector<kind_logs>& all, size_t which,
                                               double noise) {
  std::vector<std::vector<size_t>> result{{}};
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == which || all[i].ratios.empty()) continue;
    if (i > 0 && which > 0 && slower_than(all, 0, {i}, noise, standard_errors)) continue;
    result.front().push_back(i);
    if (which > 0 && all[i].ratios.size() >= confirming_blocks) result.push_back({i});
  }
  return result;
}

// How much slower one kind is, in logarithms.
std::optional<double> slower_by(const std::vector<kind_logs>& all, size_t which, double noise,
                                double errors) {
  std::optional<double> most;
  for (const auto& others : compared_with(all, which, noise))
    if (auto by = slower_than(all, which, others, noise, errors))
      most = std::max(most.value_or(0), *by);
  return most;
}

// Of the task's own kind, and those whose speedup is the same but for noise: a baseline that is
// faster or slower on some contents says nothing of the candidate.
std::vector<kind_blocks> alike(const std::vector<kind_blocks>& kinds) {
  auto noise = noise_of(kinds);
  auto all = logs_of(kinds);
  std::vector<kind_blocks> result;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (all[i].ratios.empty()) continue;
    if (i > 0 && !all[0].ratios.empty() && noise) {
      if (behind(all[0].ratios, all[i].ratios, *noise)) continue;
      if (behind(all[i].ratios, all[0].ratios, *noise) && !takes_longer(all, i, {0})) continue;
    }
    result.push_back(kinds[i]);
  }
  return result;
}

void take_times(const std::vector<timed_block>& blocks, paid_speedup& into) {
  std::vector<double> reference;
  std::vector<double> candidate;
  for (const auto& x : blocks) {
    reference.insert(reference.end(), std::begin(x.reference), std::end(x.reference));
    candidate.insert(candidate.end(), std::begin(x.candidate), std::end(x.candidate));
  }
  into.reference_seconds = median_in_place(reference);
  into.candidate_seconds = median_in_place(candidate);
}

void pay(const std::vector<timed_block>& blocks, paid_speedup& into) {
  into.speedup = estimate_speedup(blocks);
  take_times(blocks, into);
}

struct slower_kind {
  size_t index;
  double by; // logarithm
};

// The kind with the lowest speedup, from one on, of those that are slower by more than so many
// standard errors.
std::optional<slower_kind> slowest_of(const std::vector<kind_blocks>& kinds, size_t from,
                                      double errors) {
  auto noise = noise_of(kinds);
  if (!noise) return std::nullopt;
  auto all = logs_of(kinds);
  std::optional<slower_kind> result;
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t i = from; i < kinds.size(); ++i) {
    if (all[i].ratios.empty()) continue;
    auto by = slower_by(all, i, *noise, errors);
    if (!by) continue;
    double speedup = median(all[i].ratios);
    if (speedup >= lowest) continue;
    result = slower_kind{i, *by};
    lowest = speedup;
  }
  return result;
}

double largest_ratio(const std::vector<timed_block>& blocks) {
  auto ratios = log_ratios(blocks);
  return *std::max_element(ratios.begin(), ratios.end());
}

} // namespace

double log_ratio(const timed_block& x) {
  return (std::log(x.reference[0] / x.candidate[0]) + std::log(x.reference[1] / x.candidate[1])) /
         2;
}

double median(std::vector<double> x) {
  return x.empty() ? 0 : median_in_place(x);
}

speedup_interval estimate_speedup(const std::vector<timed_block>& blocks) {
  auto ratios = log_ratios(blocks);
  auto averages = walsh_averages(ratios);
  double middle = median(averages);
  if (ratios.size() == 1) return {std::exp(middle), 0, std::numeric_limits<double>::infinity()};
  double low = 0, high = 0;
  if (ratios.size() < fewest_for_ranks) {
    double mean =
        std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size());
    double half = half_width_by_t(ratios, mean);
    low = std::min(middle, mean - half);
    high = std::max(middle, mean + half);
  } else {
    auto outside = left_out(ratios.size());
    low = averages[outside - 1];
    high = averages[averages.size() - outside];
  }
  return {std::exp(middle), std::exp(low), std::exp(high)};
}

speedup_interval widened(const speedup_interval& x, double spread) {
  if (!(x.low > 0) || !std::isfinite(x.high)) return x;
  double more = 1.96 * spread;
  return {x.estimate, x.estimate * std::exp(-std::hypot(std::log(x.estimate / x.low), more)),
          x.estimate * std::exp(std::hypot(std::log(x.high / x.estimate), more))};
}

double baseline_half_width(const std::vector<kind_blocks>& kinds) {
  std::vector<timed_block> alone; // kinds differ for a reason: only what each varies by counts
  for (const auto& kind : kinds) {
    std::vector<double> times;
    for (const auto& x : kind.blocks)
      times.insert(times.end(), std::begin(x.reference), std::end(x.reference));
    double middle = median(times);
    for (const auto& x : kind.blocks)
      alone.push_back({{x.reference[0] / middle, x.reference[1] / middle}, {1, 1}});
  }
  return estimate_speedup(alone).relative_half_width();
}

double spread_of_processes(double candidate_seconds, double reference_seconds) {
  return std::hypot(host_process_spread, host_call_spread / candidate_seconds,
                    host_call_spread / reference_seconds);
}

std::optional<double> slowed_by_order(const std::vector<timed_block>& blocks) {
  if (blocks.size() < fewest_for_order) return std::nullopt;
  std::vector<timed_block> second_to_first;
  for (const auto& x : blocks)
    second_to_first.push_back({{x.reference[1], x.candidate[1]}, {x.reference[0], x.candidate[0]}});
  auto slowed = estimate_speedup(second_to_first);
  if (slowed.low < 1 + least_slowed) return std::nullopt;
  return slowed.estimate;
}

double trimmed_mean(std::vector<double> x) {
  if (x.empty()) return 0;
  auto kept = x.begin() + static_cast<std::ptrdiff_t>(x.size() - x.size() / 10);
  std::nth_element(x.begin(), kept - 1, x.end());
  return std::accumulate(x.begin(), kept, 0.0) / static_cast<double>(kept - x.begin());
}

bool knows_noise(const std::vector<kind_blocks>& kinds) {
  return noise_of(kinds).has_value();
}

paid_speedup pay_alike(const std::vector<kind_blocks>& kinds) {
  paid_speedup result;
  std::vector<timed_block> all;
  std::vector<timed_block> others;
  for (const auto& kind : alike(kinds)) {
    all.insert(all.end(), kind.blocks.begin(), kind.blocks.end());
    if (kind.name != kinds.front().name)
      others.insert(others.end(), kind.blocks.begin(), kind.blocks.end());
  }
  pay(all, result);
  // Zeros and equal numbers need less of a processor's power, for either side alike: the speedup is
  // the same there, the times are not.
  if (const auto& own = kinds.front().blocks; !own.empty()) take_times(own, result);
  if (others.size() >= confirming_blocks)
    result.speedup.low = std::min(result.speedup.low, estimate_speedup(others).estimate);
  return result;
}

paid_speedup pay_slowest(const std::vector<kind_blocks>& kinds) {
  auto slowest = slowest_of(kinds, 0, standard_errors);
  if (!slowest) return pay_alike(kinds);
  paid_speedup result;
  const auto& [name, blocks] = kinds[slowest->index];
  if (blocks.size() >= confirming_blocks) {
    pay(blocks, result);
    result.slowest = name;
  } else {
    result = pay_alike(kinds);
    result.in_doubt = name;
    double most = estimate_speedup(blocks).estimate;
    result.speedup.low = std::min(result.speedup.low, most);
    result.speedup.estimate = std::min(result.speedup.estimate, most);
  }
  result.times_slower = std::exp(slowest->by);
  return result;
}

std::optional<std::string> doubtful_kind(const std::vector<kind_blocks>& kinds) {
  auto found = slowest_of(kinds, 1, doubted_errors);
  return found ? std::optional{kinds[found->index].name} : std::nullopt;
}

std::optional<double> slower_now(const kind_blocks& before, const kind_blocks& now) {
  auto noise = noise_of({before, now});
  if (!noise || before.blocks.empty() || now.blocks.empty()) return std::nullopt;
  auto by = behind(log_ratios(now.blocks), log_ratios(before.blocks), *noise);
  return by ? std::optional{std::exp(*by)} : std::nullopt;
}

bool tells_apart(const kind_blocks& own, const kind_blocks& other) {
  auto noise = noise_of({own, other});
  return noise && !own.blocks.empty() && !other.blocks.empty() &&
         standard_errors * error_between(own.blocks.size(), other.blocks.size(), *noise) <
             told_apart;
}

std::string stop_reason(const std::vector<timed_block>& blocks, const stopping_rule& rule,
                        double elapsed_seconds) {
  if (blocks.empty()) return {};
  if (blocks.size() >= rule.max_blocks) return "the most blocks";
  if (elapsed_seconds >= rule.budget_seconds) return "the time budget is spent";
  if (blocks.size() >= blocks_before_giving_up && blocks.size() <= rule.min_blocks &&
      std::exp(largest_ratio(blocks)) < hopeless_speedup)
    return "slower than half the reference in every block";
  if (blocks.size() < rule.min_blocks) return {};
  if (estimate_speedup(blocks).relative_half_width() < rule.half_width) return narrow_enough;
  return {};
}

std::string stop_reason_by_kind(const std::vector<kind_blocks>& kinds, const stopping_rule& rule,
                                double elapsed_seconds) {
  std::vector<timed_block> all;
  for (const auto& x : kinds) all.insert(all.end(), x.blocks.begin(), x.blocks.end());
  auto reason = stop_reason(all, rule, elapsed_seconds);
  if (!reason.empty() || all.size() < rule.min_blocks) return reason;
  auto paid = pay_slowest(kinds);
  if (!paid.in_doubt && paid.speedup.relative_half_width() < rule.half_width) return narrow_enough;
  return {};
}

} // namespace kernelmill

#include "gpu/referee/paid_kinds.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace kernelmill {

namespace {

constexpr double least_difference = 0.05; // of speedups of two kinds, in logarithms
constexpr double standard_errors = 4;     // before a kind is called slower
constexpr double doubted_errors = 1.5;    // before it is timed again
constexpr double own_share_of_noise = 0.75;
constexpr double told_apart = 0.1;      // of speedups, in logarithms
constexpr size_t fewest_neighbours = 4; // to know the noise
constexpr size_t fewest_of_a_kind = 3;  // to know that of one kind
constexpr double believed_noise = 2;    // times the baseline's
// The same of one kind. A copy of the baseline that varies as much has 1.41 times its noise.
constexpr double believed_noise_of_a_kind = 1.5;
constexpr size_t blocks_of_a_pace = 3;

double log_reference(const timed_block& x) {
  return (std::log(x.reference[0]) + std::log(x.reference[1])) / 2;
}

using of_block = double (*)(const timed_block&);

// By how much neighbouring blocks of one kind differ, so that neither differences between kinds nor
// slow drift are taken for noise.
void add_steps(const kind_blocks& kind, of_block of, std::vector<double>& into) {
  for (size_t i = 1; i < kind.blocks.size(); ++i)
    into.push_back(std::fabs(of(kind.blocks[i]) - of(kind.blocks[i - 1])));
}

double deviation_of(std::vector<double> steps) {
  return of_a_normal * median(std::move(steps)) / std::sqrt(2.0);
}

using noises = std::vector<double>; // of each, at least that of all

struct steps_of_kinds {
  std::vector<double> seen;      // of speedups
  std::vector<double> reference; // of the baseline's seconds
};

// A candidate that is now faster, now slower would hide behind its own noise what it is slower on
// some contents. So there is no more than the baseline's shows: as many seconds, and twice that.
double believed(const steps_of_kinds& x, double shorter) {
  return std::min(deviation_of(x.seen), believed_noise * deviation_of(x.reference) * shorter);
}

// What draws of a kind differ by is a share of a call, of a fast one as of a slow one. A candidate
// that could add more than a copy of the baseline has would hide behind it that it is slow there.
double believed_of_a_kind(const steps_of_kinds& x) {
  return std::min(deviation_of(x.seen), believed_noise_of_a_kind * deviation_of(x.reference));
}

// Of which blocks the noise of a kind is.
enum class noise_from : unsigned char { all_kinds, its_own };

// Of the logarithm of a speedup. What a call takes hangs on the draw for some kinds and not for
// others, so each has its own. Nothing where there are too few neighbours to know that of all.
std::optional<noises> noise_of(const std::vector<kind_blocks>& kinds, noise_from from) {
  steps_of_kinds all;
  std::vector<steps_of_kinds> each(kinds.size());
  std::vector<double> speedups;
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (auto* into : {&all, &each[i]}) {
      add_steps(kinds[i], log_ratio, into->seen);
      add_steps(kinds[i], log_reference, into->reference);
    }
    for (const auto& x : kinds[i].blocks) speedups.push_back(log_ratio(x));
  }
  if (all.seen.size() < fewest_neighbours) return std::nullopt;
  // Whether to look again costs only pairs: there a fast candidate has the baseline's noise.
  double shorter =
      from == noise_from::all_kinds ? 1.0 : std::max(1.0, std::exp(median(std::move(speedups))));
  double of_all = believed(all, shorter);
  noises result;
  for (const auto& x : each) {
    bool is_known = from == noise_from::its_own && x.seen.size() >= fewest_of_a_kind;
    result.push_back(is_known ? std::max(of_all, believed_of_a_kind(x)) : of_all);
  }
  return result;
}

// Values of one or several kinds, and the mean variance of one.
struct sample {
  std::vector<double> values;
  double variance = 0;

  void add(const std::vector<double>& more, double noise) {
    auto before = static_cast<double>(values.size());
    auto count = static_cast<double>(more.size());
    if (before + count > 0)
      variance = (variance * before + noise * noise * count) / (before + count);
    values.insert(values.end(), more.begin(), more.end());
  }
};

// Of what the medians of two differ by.
double error_between(const sample& x, const sample& others) {
  return of_a_median * std::sqrt(x.variance / static_cast<double>(x.values.size()) +
                                 others.variance / static_cast<double>(others.values.size()));
}

// How much less `x` is than `others`, in logarithms; nothing where that may be noise.
std::optional<double> behind(const sample& x, const sample& others,
                             double errors = standard_errors) {
  double by = median(others.values) - median(x.values);
  if (by <= std::max(std::log1p(least_difference), errors * error_between(x, others)))
    return std::nullopt;
  return by;
}

// Of the blocks of a kind.
struct kind_logs {
  std::vector<double> ratios; // of speedups
  std::vector<double> own;    // of the candidate's seconds, by the machine's pace at that moment
  double noise = 0;
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

// While noise is unknown, nothing is behind anything.
std::vector<kind_logs> logs_of(const std::vector<kind_blocks>& kinds,
                               noise_from from = noise_from::its_own) {
  auto noise = noise_of(kinds, from);
  std::vector<kind_logs> result(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (const auto& x : kinds[i].blocks) {
      result[i].ratios.push_back(log_ratio(x));
      result[i].own.push_back((std::log(x.candidate[0]) + std::log(x.candidate[1])) / 2 -
                              pace_at(x.place, kinds.front().blocks));
    }
    result[i].noise = noise ? (*noise)[i] : std::numeric_limits<double>::infinity();
  }
  return result;
}

// Those of several kinds together.
sample joined(const std::vector<kind_logs>& all, const std::vector<size_t>& which,
              std::vector<double> kind_logs::*values) {
  sample result;
  for (size_t i : which) result.add(all[i].*values, all[i].noise);
  return result;
}

// Whether the candidate itself takes longer on a kind than on others, nearly as surely as its
// speedup is less there: where its baseline is faster, that is no shortcut of the candidate's, and
// where noise said otherwise, a kernel would have now one price, now the other. Its times differ by
// less than its speedups, which have the baseline's noise as well.
bool takes_longer(const std::vector<kind_logs>& all, size_t which,
                  const std::vector<size_t>& others, double errors) {
  return behind(joined(all, others, &kind_logs::own), joined(all, {which}, &kind_logs::own),
                own_share_of_noise * errors)
      .has_value();
}

// Both of the same two: less of a speedup, and a candidate that takes longer.
std::optional<double> slower_than(const std::vector<kind_logs>& all, size_t which,
                                  const std::vector<size_t>& others, double errors) {
  auto theirs = joined(all, others, &kind_logs::ratios);
  if (all[which].ratios.empty() || theirs.values.empty() ||
      !takes_longer(all, which, others, errors))
    return std::nullopt;
  return behind(joined(all, {which}, &kind_logs::ratios), theirs, errors);
}

// With what a kind is compared: with all others, and with each that has blocks enough, for where
// most kinds are slow and one is fast, each slow one is like most others. What is paid is the
// task's own kind: one on which the candidate is plainly faster than there makes no other slow.
std::vector<std::vector<size_t>> compared_with(const std::vector<kind_logs>& all, size_t which) {
  std::vector<std::vector<size_t>> result{{}};
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == which || all[i].ratios.empty()) continue;
    if (i > 0 && which > 0 && slower_than(all, 0, {i}, standard_errors)) continue;
    result.front().push_back(i);
    if (which > 0 && all[i].ratios.size() >= confirming_blocks) result.push_back({i});
  }
  return result;
}

// How much slower one kind is, in logarithms.
std::optional<double> slower_by(const std::vector<kind_logs>& all, size_t which, double errors) {
  std::optional<double> most;
  for (const auto& others : compared_with(all, which))
    if (auto by = slower_than(all, which, others, errors)) most = std::max(most.value_or(0), *by);
  return most;
}

// Of the task's own kind, and those whose speedup is the same but for noise: a baseline that is
// faster or slower on some contents says nothing of the candidate.
std::vector<kind_blocks> alike(const std::vector<kind_blocks>& kinds) {
  auto all = logs_of(kinds);
  auto ratios = [&](size_t i) { return joined(all, {i}, &kind_logs::ratios); };
  std::vector<kind_blocks> result;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (all[i].ratios.empty()) continue;
    if (i > 0 && !all[0].ratios.empty()) {
      if (behind(ratios(0), ratios(i))) continue;
      if (behind(ratios(i), ratios(0)) && !takes_longer(all, i, {0}, standard_errors)) continue;
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
  into.reference_seconds = median(std::move(reference));
  into.candidate_seconds = median(std::move(candidate));
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
std::optional<slower_kind> slowest_of(const std::vector<kind_blocks>& kinds,
                                      const std::vector<kind_logs>& all, size_t from,
                                      double errors) {
  std::optional<slower_kind> result;
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t i = from; i < kinds.size(); ++i) {
    if (all[i].ratios.empty()) continue;
    auto by = slower_by(all, i, errors);
    if (!by) continue;
    double speedup = median(all[i].ratios);
    if (speedup >= lowest) continue;
    result = slower_kind{i, *by};
    lowest = speedup;
  }
  return result;
}

// That draws of a kind differ is a reason not to call it slower, and none not to look, nor to pay
// more than it shows.
std::vector<kind_logs> logs_for_doubts(const std::vector<kind_blocks>& kinds) {
  return logs_of(kinds, noise_from::all_kinds);
}

} // namespace

bool knows_noise(const std::vector<kind_blocks>& kinds) {
  return noise_of(kinds, noise_from::all_kinds).has_value();
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
  const auto& own = kinds.front().blocks;
  if (!own.empty()) take_times(own, result);
  if (others.size() >= confirming_blocks)
    result.speedup.low = std::min(result.speedup.low, estimate_speedup(others).estimate);
  if (!own.empty() && slower_by(logs_for_doubts(kinds), 0, doubted_errors))
    result.speedup.low = std::min(result.speedup.low, estimate_speedup(own).estimate);
  return result;
}

paid_speedup pay_slowest(const std::vector<kind_blocks>& kinds) {
  auto slowest = slowest_of(kinds, logs_of(kinds), 0, standard_errors);
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
  auto found = slowest_of(kinds, logs_for_doubts(kinds), 1, doubted_errors);
  return found ? std::optional{kinds[found->index].name} : std::nullopt;
}

std::optional<double> slower_now(const kind_blocks& before, const kind_blocks& now) {
  if (before.blocks.empty() || now.blocks.empty()) return std::nullopt;
  auto all = logs_of({before, now});
  auto by = behind(joined(all, {1}, &kind_logs::ratios), joined(all, {0}, &kind_logs::ratios));
  return by ? std::optional{std::exp(*by)} : std::nullopt;
}

bool tells_apart(const kind_blocks& own, const kind_blocks& other) {
  if (own.blocks.empty() || other.blocks.empty()) return false;
  auto all = logs_of({own, other});
  auto error =
      error_between(joined(all, {0}, &kind_logs::ratios), joined(all, {1}, &kind_logs::ratios));
  return standard_errors * error < told_apart;
}

} // namespace kernelmill

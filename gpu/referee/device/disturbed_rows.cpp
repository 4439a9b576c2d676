#include "gpu/referee/device/disturbed_rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "gpu/referee/row_arithmetic.hpp"
#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

namespace {

constexpr double much_longer = 0.08;   // of a usual call; what is more is plainly longer in any row
constexpr double little_longer = 0.02; // of one, that rows may differ by
constexpr long fewest_undisturbed = 3;
constexpr size_t enough_for_a_median = 8;

using more_of = std::function<double(size_t)>; // seconds of a call, by row

double by_far(const side_rows& x) {
  return x.usual * much_longer;
}

// By how much more than usual a call is plainly longer: what a late first launch makes of it, but
// no less than such rows differ among themselves.
double little(const side_rows& x, size_t i) {
  double differ = std::max(2 * (x.usual - x.least), x.usual * little_longer);
  return std::min(std::max(differ, late_launch / x.calls[i]), by_far(x));
}

bool exceeds(const side_rows& x, size_t i, double more) {
  return x.seconds[i] > x.usual + more;
}

// Whether others may have made so many of a candidate's rows longer.
bool may_be_by_others(const side_rows& candidate, const side_rows& baseline, const more_of& more) {
  double longer = 0;
  double theirs = 0;
  for (size_t i = 0; i < candidate.seconds.size(); ++i) {
    longer += exceeds(candidate, i, more(i));
    theirs += exceeds(baseline, i, more(i));
  }
  return longer <= theirs + 2 * std::sqrt(theirs + 1) + 1;
}

// What a candidate's rows are left out for: being longer by a little, if others explain that many;
// else by much, if they explain these; else nothing.
std::optional<more_of> left_out_for(const side_rows& candidate, const side_rows& baseline) {
  more_of by_little = [&](size_t i) { return little(candidate, i); };
  more_of by_much = [&](size_t) { return by_far(candidate); };
  if (!may_be_by_others(candidate, baseline, by_much)) return std::nullopt;
  return may_be_by_others(candidate, baseline, by_little) ? by_little : by_much;
}

double median_without(const side_rows& x, const more_of& more) {
  std::vector<double> kept;
  for (size_t i = 0; i < x.seconds.size(); ++i)
    if (!exceeds(x, i, more(i))) kept.push_back(x.seconds[i]);
  return median(std::move(kept));
}

} // namespace

side_rows side_of(std::vector<double> seconds, std::vector<double> calls) {
  side_rows result;
  result.seconds = seconds;
  result.calls = std::move(calls);
  if (seconds.empty()) return result;
  std::sort(seconds.begin(), seconds.end());
  result.usual = seconds[seconds.size() / 4];
  result.least = seconds.front();
  return result;
}

std::vector<bool> undisturbed(const side_rows& candidate, const side_rows& reference,
                              const side_rows& as_it_came) {
  auto counts = [&](const std::optional<more_of>& of_candidate, const more_of& of_reference) {
    std::vector<bool> result;
    for (size_t i = 0; i < candidate.seconds.size(); ++i)
      result.push_back(!(of_candidate && exceeds(candidate, i, (*of_candidate)(i))) &&
                       !exceeds(reference, i, of_reference(i)));
    return result;
  };
  auto are_enough = [](const std::vector<bool>& x) {
    return std::count(x.begin(), x.end(), true) >= fewest_undisturbed;
  };
  auto excused = left_out_for(candidate, as_it_came);
  auto few = counts(excused, [&](size_t i) { return little(reference, i); });
  if (are_enough(few)) return few;
  if (excused) excused = [&](size_t) { return by_far(candidate); };
  auto more = counts(excused, [&](size_t) { return by_far(reference); });
  return are_enough(more) ? more : std::vector<bool>(more.size(), true);
}

double usual_of(const side_rows& x) {
  if (x.seconds.size() < enough_for_a_median) return x.usual;
  return median_without(x, [&](size_t i) { return little(x, i); });
}

double usual_beside(const side_rows& candidate, const side_rows& as_it_came) {
  if (candidate.seconds.size() < enough_for_a_median) return candidate.usual;
  auto more = left_out_for(candidate, as_it_came);
  return more ? median_without(candidate, *more) : median(candidate.seconds);
}

double usual_of_few(std::vector<double> seconds) {
  auto x = side_of(std::move(seconds), {});
  if (x.seconds.size() < enough_for_a_median) return x.usual;
  return median_without(x, [&](size_t) { return by_far(x); });
}

} // namespace kernelmill

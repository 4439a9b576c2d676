#include "actors/episode/returns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kernelmill {

namespace {

// A return that is not a number would spread to every member of its group.
bool counts(const std::optional<double>& x) {
  return x && std::isfinite(*x);
}

double advantage(double x, const group_statistics& group, double count, advantage_kind kind) {
  double centered = x - group.mean;
  switch (kind) {
    case advantage_kind::mean_centered: return centered;
    case advantage_kind::normalized: return centered / group.deviation;
    // x minus the mean of the others.
    case advantage_kind::leave_one_out: return centered * count / (count - 1);
  }
  return centered;
}

} // namespace

std::vector<double> discounted_returns(std::span<const std::optional<double>> rewards, double gamma,
                                       unsigned unspent) {
  std::vector<double> result(rewards.size(), std::numeric_limits<double>::quiet_NaN());
  double after = 0;
  if (!rewards.empty() && rewards.back())
    for (unsigned i = 0; i < unspent; ++i) after = *rewards.back() + gamma * after;
  for (size_t i = rewards.size(); i-- > 0;)
    if (rewards[i]) after = result[i] = *rewards[i] + gamma * after;
  return result;
}

group_statistics group_advantages(std::span<const std::optional<double>> returns,
                                  advantage_kind kind) {
  group_statistics result;
  result.advantages.assign(returns.size(), std::numeric_limits<double>::quiet_NaN());
  double count = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto& x : returns) {
    if (!counts(x)) continue;
    count += 1;
    result.mean += (*x - result.mean) / count;
    low = std::min(low, *x);
    high = std::max(high, *x);
  }
  if (count == 0) return result;
  // Said outright: rounding of the mean must not make a difference between equals.
  bool equal = low == high;
  if (equal) result.mean = low;
  double squares = 0;
  for (const auto& x : returns)
    if (counts(x)) squares += (*x - result.mean) * (*x - result.mean);
  result.deviation = std::sqrt(squares / count);
  for (size_t i = 0; i < returns.size(); ++i)
    if (counts(returns[i]))
      result.advantages[i] =
          equal || result.deviation == 0 ? 0 : advantage(*returns[i], result, count, kind);
  return result;
}

} // namespace kernelmill

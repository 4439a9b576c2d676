#include "launch/analysis/simulate/distribution.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace kernelmill::simulating {

namespace {

constexpr double z90 = 1.2815515655446004; // of the normal distribution
constexpr double longest = 1e7;            // seconds; four months

std::optional<double> number(std::string_view text) {
  double x = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (code != std::errc{} || end != text.data() + text.size() || !(x >= 0) || x > longest)
    return {};
  return x;
}

} // namespace

uint64_t random_source::next() {
  state_ += 0x9e3779b97f4a7c15;
  auto x = state_;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

double random_source::unit() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

distribution distribution::constant(double seconds) {
  distribution result;
  result.a_ = seconds;
  return result;
}

distribution distribution::uniform(double low, double high) {
  distribution result;
  result.shape_ = shape::uniform;
  result.a_ = low;
  result.b_ = high;
  return result;
}

distribution distribution::lognormal(double median, double p90) {
  distribution result;
  result.shape_ = shape::lognormal;
  result.a_ = median;
  result.b_ = std::log(p90 / median) / z90;
  return result;
}

distribution distribution::measured(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  distribution result;
  result.shape_ = shape::measured;
  result.values_ = std::make_shared<const std::vector<double>>(std::move(seconds));
  return result;
}

expected<distribution> distribution::parse(const std::string& text) {
  auto split = [&](std::string_view by) -> std::optional<std::pair<double, double>> {
    auto at = text.find(by);
    if (at == text.npos) return {};
    auto a = number(std::string_view{text}.substr(0, at));
    auto b = number(std::string_view{text}.substr(at + by.size()));
    if (!a || !b || *a > *b) return {};
    return std::pair{*a, *b};
  };
  if (auto x = number(text)) return constant(*x);
  if (auto x = split("..")) return uniform(x->first, x->second);
  if (auto x = split(":"); x && x->first > 0) return lognormal(x->first, x->second);
  return configuration_error("usage", "failed to read the seconds \"" + text + "\"",
                             "write 0.15, or 1..3 for any between, or 20:60 for a median and a "
                             "90th percentile");
}

double distribution::draw(random_source& from) const {
  switch (shape_) {
    case shape::constant: return a_;
    case shape::uniform: return a_ + (b_ - a_) * from.unit();
    case shape::lognormal: {
      auto radius = std::sqrt(-2 * std::log(1 - from.unit()));
      auto normal = radius * std::cos(2 * std::numbers::pi * from.unit());
      return a_ * std::exp(b_ * normal);
    }
    case shape::measured:
      return (*values_)[static_cast<size_t>(from.unit() * static_cast<double>(values_->size()))];
  }
  return 0;
}

double distribution::mean() const {
  switch (shape_) {
    case shape::constant: return a_;
    case shape::uniform: return (a_ + b_) / 2;
    case shape::lognormal: return a_ * std::exp(b_ * b_ / 2);
    case shape::measured:
      return std::accumulate(values_->begin(), values_->end(), 0.0) /
             static_cast<double>(values_->size());
  }
  return 0;
}

std::string distribution::text() const {
  switch (shape_) {
    case shape::constant: return fmt::format("{:.4g}", a_);
    case shape::uniform: return fmt::format("{:.4g}..{:.4g}", a_, b_);
    case shape::lognormal: return fmt::format("{:.4g}:{:.4g}", a_, a_ * std::exp(b_ * z90));
    case shape::measured: {
      auto at = [&](double share) {
        return (*values_)[static_cast<size_t>(share * static_cast<double>(values_->size() - 1))];
      };
      return fmt::format("{} measured, median {:.4g}, p90 {:.4g}", values_->size(), at(0.5),
                         at(0.9));
    }
  }
  return {};
}

double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  auto at = values.begin() + static_cast<ptrdiff_t>(rank == 0 ? 0 : rank - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

} // namespace kernelmill::simulating

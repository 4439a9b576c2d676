#include "gpu/referee/comparison.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gpu/task/vectorized.hpp"

namespace kernelmill {

namespace {

constexpr double floor_bound = 1e-30; // for elements whose scale is 0, such as the sum of zeros
constexpr double infinity = std::numeric_limits<double>::infinity();

// Counts what is not plainly within its bound; NaN compares false and so is counted. This is all
// that a right output costs.
KERNELMILL_VECTORIZED uint64_t count_suspects(const float* got, const double* want,
                                              const double* scale, size_t n, double unit) {
  uint64_t suspects = 0;
  for (size_t i = 0; i < n; ++i)
    suspects += std::fabs(got[i] - want[i]) <= unit * scale[i] + floor_bound ? 0u : 1u;
  return suspects;
}

KERNELMILL_VECTORIZED double largest_error(const float* got, const double* want, size_t n) {
  double largest = 0;
  for (size_t i = 0; i < n; ++i) {
    double difference = std::fabs(got[i] - want[i]);
    largest = difference > largest ? difference : largest;
  }
  return largest;
}

bool same_special(double got, double want) {
  return (std::isnan(want) && std::isnan(got)) || (std::isinf(want) && got == want);
}

double error_of(double got, double want) {
  if (same_special(got, want)) return 0;
  double difference = std::fabs(got - want);
  return std::isfinite(difference) ? difference : infinity;
}

} // namespace

comparison compare(std::span<const float> got, std::span<const double> want,
                   std::span<const double> scale, double tolerance, const std::string& name) {
  comparison result;
  double unit = tolerance * 0x1p-24;
  bool clean = count_suspects(got.data(), want.data(), scale.data(), got.size(), unit) == 0;
  double largest = clean ? largest_error(got.data(), want.data(), got.size()) : -1;
  bool bound_found = false;
  for (size_t i = 0; i < got.size(); ++i) {
    double difference = error_of(got[i], want[i]);
    double bound = unit * scale[i] + floor_bound;
    if (clean) { // only the bound at the largest error is still missing
      if (difference != largest) continue;
      result.max_error = difference;
      result.bound = bound;
      break;
    }
    bool bad = !(difference <= bound) && !same_special(got[i], want[i]);
    if (bad && result.bad++ == 0)
      result.first_bad = fmt::format("{}[{}]: got {:.9g}, want {:.9g} (bound {:.3g})", name, i,
                                     got[i], want[i], bound);
    if (!bound_found || difference > result.max_error) {
      result.max_error = difference;
      result.bound = bound;
      bound_found = true;
    }
  }
  return result;
}

comparison compare(std::span<const int32_t> got, std::span<const int32_t> want,
                   const std::string& name) {
  comparison result;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    if (result.bad++ == 0)
      result.first_bad =
          fmt::format("{}[{}]: got {}, want {} (must be equal)", name, i, got[i], want[i]);
    result.max_error = std::max(result.max_error, std::fabs(double(got[i]) - double(want[i])));
  }
  return result;
}

comparison worse_of(comparison a, const comparison& b) {
  bool other = b.bad > 0 && a.bad == 0;
  other = other || (b.bad > 0) == (a.bad > 0) ? other || b.max_error > a.max_error : other;
  if (other) {
    a.max_error = b.max_error;
    a.bound = b.bound;
  }
  if (a.first_bad.empty()) a.first_bad = b.first_bad;
  a.bad += b.bad;
  return a;
}

} // namespace kernelmill

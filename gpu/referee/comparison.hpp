#pragma once

// Whether an output is right, by the bound that docs/reference/tasks.md promises.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kernelmill {

struct comparison {
  double max_error = 0;  ///< largest |got - want|; infinity where not finite against a number
  double bound = 0;      ///< at that element
  uint64_t bad = 0;      ///< elements outside their bound
  std::string first_bad; ///< "y[3]: got 1.5, want 2.25 (bound 1e-6)"

  bool pass() const noexcept { return bad == 0; }
};

/// f32 against fp64 truth: |got - want| <= tolerance * 2^-24 * scale + 1e-30; where the truth is
/// not finite, only the same passes. REQUIRES: equal sizes.
comparison compare(std::span<const float> got, std::span<const double> want,
                   std::span<const double> scale, double tolerance, const std::string& name);

/// i32: equal or wrong.
comparison compare(std::span<const int32_t> got, std::span<const int32_t> want,
                   const std::string& name);

/// Joins the results of two outputs of one call.
comparison worse_of(comparison a, const comparison& b);

} // namespace kernelmill

#pragma once

// Where a kernel lies under the roofline of its device: arithmetic intensity, what it achieved, the
// device's peaks and its ridge point. What is not known is missing, and never zero.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/profiler/metrics.hpp"

namespace kernelmill {

/// What the device can do at most.
struct device_roof {
  std::optional<double> flops;     ///< flop/s, fp32 without matrix units
  std::optional<double> bandwidth; ///< B/s, of the device's memory

  /// flop/B from which the arithmetic is the limit.
  std::optional<double> ridge() const;
};

/// What was done, by the task's declaration or by counters.
struct roofline_work {
  std::optional<double> flops;   ///< flop
  std::optional<double> bytes;   ///< B
  std::optional<double> seconds; ///< s
};

struct roofline_position {
  std::optional<double> intensity; ///< flop/B
  std::optional<double> flops;     ///< flop/s
  std::optional<double> bandwidth; ///< B/s
  device_roof roof;

  /// flop/s that the roof allows at this intensity.
  std::optional<double> attainable() const;
  /// Whether memory is the lower part of the roof at this intensity.
  std::optional<bool> is_below_slope() const;
  bool empty() const { return !intensity && !flops && !bandwidth; }
};

roofline_position position_of(const roofline_work& work, const device_roof& roof);

/// Of one kernel by ncu's counters: fp32 operations and bytes of device memory. Without flops where
/// tensor cores or double precision took part, whose operations are not counted.
roofline_work counted_work(const metric_values& x);

/// A number of a position as documents and messages have it.
struct roofline_quantity {
  std::string_view name; ///< "arithmetic_intensity", "ridge_point", ...
  double value;
  std::string_view unit; ///< "flop/B", "flop/s", "B/s"
};

/// What is known of a position, in a fixed order.
std::vector<roofline_quantity> quantities_of(const roofline_position& x);

/// Puts a number back by its name; false: there is none of that name.
bool set_quantity(roofline_position& x, std::string_view name, double value);

/// "3.35 TB/s".
std::string with_unit(double value, std::string_view unit);

/// "0.25 flop/B (ridge 20), 0.81 Tflop/s of 66.9 Tflop/s, 3.2 TB/s of 3.35 TB/s, 97 % of the roof;
/// below the slope of memory"; empty where nothing is known.
std::string position_text(const roofline_position& x);

} // namespace kernelmill

#pragma once

// How long a stage takes: one of a few shapes, or the values that an earlier run measured.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill::simulating {

/// Random numbers that are the same on every machine. A value type; cheap to make for one draw.
class random_source {
public:
  explicit random_source(uint64_t seed) : state_(seed) {
    // nop
  }

  uint64_t next();
  double unit(); ///< within [0, 1)

private:
  uint64_t state_;
};

/// Seconds, never below 0.
class distribution {
public:
  distribution() = default; ///< always 0

  static distribution constant(double seconds);
  static distribution uniform(double low, double high);
  static distribution lognormal(double median, double p90); ///< REQUIRES: 0 < median <= p90
  static distribution measured(std::vector<double> seconds);

  /// Reads "0.15", "1..3" (uniform) and "20:60" (lognormal: median and 90th percentile).
  static expected<distribution> parse(const std::string& text);

  double draw(random_source& from) const;
  double mean() const;

  /// As parse() reads it; of measured values their number, median and 90th percentile.
  std::string text() const;

private:
  enum class shape : unsigned char { constant, uniform, lognormal, measured };

  shape shape_ = shape::constant;
  double a_ = 0, b_ = 0;                              // value; low and high; median and sigma
  std::shared_ptr<const std::vector<double>> values_; // sorted
};

/// The value that a share of `values` lies below, the nearest of them; 0 of none. Reorders them.
double percentile(std::vector<double>& values, double share);

} // namespace kernelmill::simulating

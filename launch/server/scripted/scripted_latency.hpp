#pragma once

// How long a scripted server takes: a distribution, and a part for every token. What is drawn is
// a function of the session, so a run that is repeated or resumed meets the same waits.

#include <cstdint>

namespace kernelmill {

struct scripted_latency {
  enum class shape : unsigned char { constant, uniform, lognormal };
  shape kind = shape::constant;
  double ms = 0;           ///< constant
  double low_ms = 0;       ///< uniform
  double high_ms = 0;      ///< uniform
  double median_ms = 0;    ///< lognormal
  double sigma = 0;        ///< lognormal: standard deviation of the logarithm
  double max_ms = 600'000; ///< of any
  double per_token_ms = 0; ///< of any: for each token of the completion
};

/// The wait in milliseconds for a completion of so many tokens; the same `draw` gives the same.
double wait_ms(const scripted_latency& x, uint64_t draw, uint64_t tokens);

} // namespace kernelmill

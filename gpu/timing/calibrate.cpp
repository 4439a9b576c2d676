#include "gpu/timing/calibrate.hpp"

#include <algorithm>
#include <cmath>

#include "gpu/timing/thresholds.hpp"

namespace kernelmill::timing {

unsigned calls_of(double call_seconds, double batch_seconds, unsigned most) {
  double calls = std::round(batch_seconds / std::max(call_seconds, shortest_call));
  return static_cast<unsigned>(std::clamp(calls, 1.0, static_cast<double>(most)));
}

std::optional<known_baseline> learn_baseline(const make_baseline& make, double batch_seconds,
                                             unsigned most, unsigned least) {
  known_baseline result;
  batch_sample x;
  // A process warms up, and a longer batch tells better how long its calls take.
  for (unsigned calls = 1; calls <= std::min(trial_calls, most); calls *= trial_calls) {
    for (size_t i = 0; i < warming_batches; ++i)
      if (!make({}, calls, x)) return std::nullopt;
    result.calls = calls_of(x.inside / std::max(x.calls, 1u), batch_seconds, most);
    if (result.calls <= calls) break;
  }
  result.calls = std::max(result.calls, std::min(least, most));
  if (!make({}, result.calls, x)) return std::nullopt;
  std::vector<batch_sample> samples;
  for (size_t i = 0; i < calibrating_batches; ++i)
    for (auto form : {batch_form::nominal, batch_form::single}) {
      if (form == batch_form::single && result.calls == 1) continue;
      if (!make({form, {0}}, form == batch_form::single ? 1 : result.calls, x)) return std::nullopt;
      samples.push_back(x);
    }
  result.before = calibrated(samples);
  return result;
}

} // namespace kernelmill::timing

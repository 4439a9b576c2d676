#include "gpu/referee/timed_pairs.hpp"

#include <algorithm>

namespace kernelmill {

std::vector<both_seconds> deciding_pairs(const std::vector<timing::batch_pair>& pairs,
                                         const timing::paid_result& paid,
                                         const timing::calibration& before) {
  auto form = paid.slow_pattern ? timing::batch_form::pattern : timing::batch_form::nominal;
  std::vector<both_seconds> result;
  for (const auto& x : pairs) {
    bool other = paid.slow_pattern && x.order.patterns != std::vector<size_t>{*paid.slow_pattern};
    if (x.order.form != form || other) continue;
    auto times = timing::times_of(x, paid.besides, before);
    result.push_back({times.candidate, times.baseline});
  }
  return result;
}

std::vector<size_t> evenly_thinned(size_t from, size_t count) {
  std::vector<size_t> result(std::min(from, count));
  for (size_t i = 0; i < result.size(); ++i) result[i] = i * from / result.size();
  return result;
}

} // namespace kernelmill

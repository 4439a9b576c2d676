#include "launch/judging/benching/bench_rows.hpp"

#include <numeric>

#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill::benching {

namespace {

template <class F>
with_interval interval_over(const std::vector<bench_sample>& samples, F&& value) {
  std::vector<double> values;
  for (const auto& x : samples) values.push_back(value(x));
  return interval_of(values);
}

} // namespace

with_interval interval_of(const std::vector<double>& values) {
  if (values.size() == 1) return {values.front(), {}, {}};
  std::vector<timed_block> blocks; // whose ratios are the values
  for (double x : values) blocks.push_back({{x, x}, {1, 1}});
  auto found = estimate_speedup(blocks);
  return {found.estimate, found.low, found.high};
}

uint32_t bench_row::calls() const {
  return std::accumulate(samples.begin(), samples.end(), uint32_t{0},
                         [](uint32_t sum, const auto& x) { return sum + x.calls; });
}

with_interval bench_row::candidate_ms() const {
  return interval_over(samples, [](const auto& x) { return x.candidate_ms; });
}

with_interval bench_row::reference_ms() const {
  return interval_over(samples, [](const auto& x) { return x.reference_ms; });
}

with_interval bench_row::speedup() const {
  if (samples.size() == 1) return samples.front().speedup;
  return interval_over(samples, [](const auto& x) { return x.speedup.estimate; });
}

} // namespace kernelmill::benching

#include <algorithm>

#include "gpu/profiler/trace_builder.hpp"

namespace kernelmill {

namespace {

// A launch takes 2 to 10 us of the host's time, several times that under a tool that traces. In a
// longer gap the host did something else.
constexpr int64_t longest_launch_gap_ns = 50'000;

// Where at least one of them runs: in order, none touches the next.
std::vector<trace_interval> joined_intervals(std::vector<trace_interval>& x) {
  std::sort(x.begin(), x.end(), [](auto& a, auto& b) { return a.start < b.start; });
  std::vector<trace_interval> result;
  for (const auto& one : x)
    if (result.empty() || one.start > result.back().end)
      result.push_back(one);
    else
      result.back().end = std::max(result.back().end, one.end);
  return result;
}

uint64_t length_of(const std::vector<trace_interval>& x) {
  uint64_t result = 0;
  for (const auto& one : x) result += static_cast<uint64_t>(one.end - one.start);
  return result;
}

} // namespace

trace_device device_times(int64_t number, std::vector<trace_interval>& kernels,
                          std::vector<trace_interval>& copies) {
  trace_device result;
  result.device = number;
  result.launches = kernels.size();
  auto computing = joined_intervals(kernels), copying = joined_intervals(copies);
  auto both = computing;
  both.insert(both.end(), copying.begin(), copying.end());
  auto busy = joined_intervals(both);
  if (busy.empty()) return result;
  result.kernel_ns = length_of(computing);
  result.copy_ns = length_of(copying);
  result.busy_ns = length_of(busy);
  result.overlap_ns = result.kernel_ns + result.copy_ns - result.busy_ns;
  result.span_ns = static_cast<uint64_t>(busy.back().end - busy.front().start);
  for (size_t i = 1; i < busy.size(); ++i) {
    auto gap = busy[i].start - busy[i - 1].end;
    if (gap > longest_launch_gap_ns) continue;
    result.launch_gap_ns += static_cast<uint64_t>(gap);
    ++result.launch_gaps;
  }
  return result;
}

} // namespace kernelmill

#include "gpu/profiler/trace_builder.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kernelmill {

namespace {

constexpr size_t most_collected = 4096; // kernels
constexpr size_t most_reported = 256;
constexpr size_t most_devices = 64;
constexpr size_t most_kinds = 64;
constexpr size_t most_counters = 64; // of a kernel
constexpr size_t longest_word = 120;
constexpr std::string_view other_kernels = "(others)";

// So that sums of two million fit: an hour, and clocks that tell nanoseconds for a century.
constexpr int64_t longest_ns = 3'600'000'000'000;
constexpr int64_t latest_ns = int64_t{1} << 62;

// CUPTI and rocprofiler write 0 for both where they have no time.
bool can_be(const trace_interval& x) {
  return x.start >= 0 && x.end > 0 && x.end >= x.start && x.end <= latest_ns &&
         x.end - x.start <= longest_ns;
}

} // namespace

trace_builder::trace_builder(trace_tool tool) {
  report_.tool = tool;
}

uint32_t trace_builder::kernel_number(std::string_view name) {
  std::string key{name.empty() ? std::string_view{"(no name)"}
                               : name.substr(0, longest_traced_name)};
  if (auto known = numbers_.find(key); known != numbers_.end()) return known->second;
  // So many names are no program's; what they took is told together.
  if (kernels_.size() + 1 >= most_collected && key != other_kernels)
    return kernel_number(other_kernels);
  auto number = static_cast<uint32_t>(kernels_.size());
  kernels_.push_back({key, 0, {}, -1, {}, {}});
  numbers_.emplace(std::move(key), number);
  return number;
}

trace_builder::worked* trace_builder::device(int64_t number) {
  if (devices_.size() >= most_devices && !devices_.contains(number)) return nullptr;
  return &devices_[number];
}

void trace_builder::add_launch(uint32_t kernel, int64_t number, std::optional<trace_interval> when,
                               const launch_shape& shape) {
  if (!when || !can_be(*when)) {
    ++untimed_;
    return;
  }
  auto* where = device(number);
  if (full() || where == nullptr) return skip_row();
  ++rows_;
  where->kernels.push_back(*when);
  auto& x = kernels_[kernel];
  auto duration = when->end - when->start;
  x.durations.push_back(duration);
  if (duration <= x.longest) return;
  x.longest = duration;
  x.shape = shape;
}

void trace_builder::add_copy(std::string_view kind, int64_t number,
                             std::optional<trace_interval> when, std::optional<uint64_t> bytes) {
  if (!when || !can_be(*when)) {
    ++untimed_;
    return;
  }
  auto* where = device(number);
  auto& all = report_.copies;
  auto named = kind.substr(0, longest_word);
  auto known = std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.kind == named; });
  if (full() || where == nullptr || (known == all.end() && all.size() == most_kinds))
    return skip_row();
  ++rows_;
  where->copies.push_back(*when);
  if (known == all.end()) known = all.insert(all.end(), {std::string{named}, 0, 0, {}});
  ++known->count;
  known->total_ns += static_cast<uint64_t>(when->end - when->start);
  constexpr uint64_t most_bytes = uint64_t{1} << 40; // of one copy
  if (bytes && *bytes <= most_bytes) known->bytes = known->bytes.value_or(0) + *bytes;
}

void trace_builder::add_counter(uint32_t kernel, int64_t number, int64_t dispatch,
                                std::string_view name, double value) {
  auto& all = kernels_[kernel].counters;
  auto named = name.substr(0, longest_word);
  auto known = all.find(named);
  constexpr double most_value = 1e300; // so that sums are finite
  if (named.empty() || !(std::abs(value) <= most_value) || counter_rows_ == most_rows ||
      (known == all.end() && all.size() == most_counters))
    return skip_row();
  ++counter_rows_;
  if (known == all.end()) known = all.try_emplace(std::string{named}).first;
  known->second[{number, dispatch}] += value;
}

void trace_builder::add_untimed(uint32_t kernel, const launch_shape& shape) {
  auto& x = kernels_[kernel];
  ++x.calls;
  if (x.calls == 1) x.shape = shape;
}

trace_kernel trace_builder::summed(collected& x) const {
  trace_kernel result;
  result.kernel = std::move(x.name);
  result.shape = x.shape;
  result.calls = x.calls + x.durations.size();
  if (!x.durations.empty()) {
    kernel_times times;
    auto& all = x.durations;
    for (auto ns : all) times.total_ns += static_cast<uint64_t>(ns);
    auto [min, max] = std::minmax_element(all.begin(), all.end());
    times.min_ns = static_cast<uint64_t>(*min);
    times.max_ns = static_cast<uint64_t>(*max);
    auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    times.median_ns = static_cast<uint64_t>(*middle);
    if (all.size() % 2 == 0)
      times.median_ns =
          (times.median_ns + static_cast<uint64_t>(*std::max_element(all.begin(), middle))) / 2;
    result.times = times;
  }
  for (const auto& [name, values] : x.counters) {
    trace_counter one{name, values.size(), 0, values.begin()->second, values.begin()->second};
    for (const auto& [dispatch, value] : values) {
      one.mean += value / static_cast<double>(values.size());
      one.min = std::min(one.min, value);
      one.max = std::max(one.max, value);
    }
    result.counters.push_back(std::move(one));
  }
  return result;
}

trace_report trace_builder::finish() && {
  for (auto& x : kernels_) {
    auto one = summed(x);
    report_.launches += one.calls;
    if (one.calls > 0) report_.kernels.push_back(std::move(one));
  }
  auto total = [](const trace_kernel& x) { return x.times ? x.times->total_ns : 0; };
  std::stable_sort(report_.kernels.begin(), report_.kernels.end(), [&](auto& a, auto& b) {
    return std::pair{total(a), a.calls} > std::pair{total(b), b.calls};
  });
  if (report_.kernels.size() > most_reported) {
    note(fmt::format("{} more kernels took less time and are left out",
                     report_.kernels.size() - most_reported));
    report_.kernels.resize(most_reported);
  }
  if (counter_rows_ > 0 && !devices_.empty()) {
    // What it waited for between them was the tool.
    note("dispatches run one by one while counters are collected, so there is no timeline");
    devices_.clear();
  }
  for (auto& [number, x] : devices_)
    report_.devices.push_back(device_times(number, x.kernels, x.copies));
  if (untimed_ > 0)
    note(fmt::format("{} launches or copies have no times, or impossible ones", untimed_));
  if (skipped_ > 0)
    note(fmt::format("{} rows were left out: they cannot be read, or are too many", skipped_));
  if (full()) note(fmt::format("only the first {} launches and copies were read", most_rows));
  if (report_.kernels.empty()) report_.problem = trace_problem::no_kernels;
  return std::move(report_);
}

} // namespace kernelmill

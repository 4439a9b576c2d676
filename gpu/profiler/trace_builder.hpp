#pragma once

// INTERNAL to gpu/profiler: launches, copies and counters, one after the other as a tool's file has
// them, become a report.

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/profiler/trace_report.hpp"

namespace kernelmill {

inline constexpr size_t longest_traced_name = 512;

/// When something ran, in nanoseconds on the tool's clock.
struct trace_interval {
  int64_t start = 0;
  int64_t end = 0;
};

class trace_builder {
public:
  explicit trace_builder(trace_tool tool);

  /// The number of a kernel, by which launches name it. Names are cut.
  uint32_t kernel_number(std::string_view name);

  /// A launch whose times cannot be is counted and left out.
  void add_launch(uint32_t kernel, int64_t device, std::optional<trace_interval> when,
                  const launch_shape& shape);
  void add_copy(std::string_view kind, int64_t device, std::optional<trace_interval> when,
                std::optional<uint64_t> bytes);

  /// One counter of one dispatch, of which the tool may write several rows (instances of a unit):
  /// those add up.
  void add_counter(uint32_t kernel, int64_t device, int64_t dispatch, std::string_view name,
                   double value);

  /// A dispatch that was counted without being timed.
  void add_untimed(uint32_t kernel, const launch_shape& shape);

  /// A row that cannot be read.
  void skip_row() { ++skipped_; }

  /// Whether more launches or copies would be left out. Readers stop then.
  bool full() const { return rows_ >= most_rows; }

  void note(std::string words) { report_.notes.push_back(std::move(words)); }
  void set_version(std::string x) { report_.version = std::move(x); }
  void set_gpu(trace_gpu x) { report_.gpu = std::move(x); }

  trace_report finish() &&;

private:
  static constexpr size_t most_rows = 2'000'000;

  struct collected {
    std::string name;
    uint64_t calls = 0;
    std::vector<int64_t> durations;
    int64_t longest = -1;
    launch_shape shape;
    /// By counter, then by device and dispatch.
    std::map<std::string, std::map<std::pair<int64_t, int64_t>, double>, std::less<>> counters;
  };
  struct worked {
    std::vector<trace_interval> kernels, copies;
  };

  worked* device(int64_t number);
  trace_kernel summed(collected& x) const;

  trace_report report_;
  std::vector<collected> kernels_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::map<int64_t, worked> devices_;
  size_t rows_ = 0;
  size_t counter_rows_ = 0;
  uint64_t skipped_ = 0;
  uint64_t untimed_ = 0;
};

/// How a GPU spent its time. Both lists are sorted by this.
trace_device device_times(int64_t number, std::vector<trace_interval>& kernels,
                          std::vector<trace_interval>& copies);

} // namespace kernelmill

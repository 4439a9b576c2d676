#pragma once

// What a tool recorded of a program on a GPU: nsys, rocprofv3 (CSV and rocpd) and rocm-smi fill the
// same value. Tools differ in what they tell; what one does not tell is missing, never 0.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/profiler/metrics.hpp"

namespace kernelmill {

enum class trace_tool : unsigned char { nsys, rocprofv3, rocpd, rocm_smi };

/// Why there is nothing in a report although it was read.
enum class trace_problem : unsigned char {
  none,
  no_kernels, ///< nothing was launched, or nothing was traced
  no_gpus,    ///< of rocm-smi
};

using extent = std::array<uint64_t, 3>; // x, y, z

/// As the longest launch of a kernel was made.
struct launch_shape {
  std::optional<extent> grid;             ///< blocks (AMD: workgroups)
  std::optional<extent> block;            ///< threads (AMD: work-items)
  std::optional<uint64_t> registers;      ///< a thread (AMD: VGPRs)
  std::optional<uint64_t> shared;         ///< bytes a block (AMD: LDS), static and dynamic
  std::optional<uint64_t> static_shared;  ///< of those
  std::optional<uint64_t> dynamic_shared; ///< of those
};

/// A hardware counter over the dispatches of one kernel.
struct trace_counter {
  std::string name; ///< the tool's: "SQ_WAVES"
  uint64_t dispatches = 0;
  double mean = 0, min = 0, max = 0; ///< a dispatch
};

struct kernel_times {
  uint64_t total_ns = 0, median_ns = 0, min_ns = 0, max_ns = 0;
};

struct trace_kernel {
  std::string kernel; ///< demangled where the tool does that
  uint64_t calls = 0;
  std::optional<kernel_times> times;
  launch_shape shape;
  std::vector<trace_counter> counters;
};

struct trace_copies {
  std::string kind; ///< the tool's: "Host-to-Device", "memset"
  uint64_t count = 0;
  uint64_t total_ns = 0;
  std::optional<uint64_t> bytes;
};

/// How one GPU spent the time from the first to the last thing that it did.
struct trace_device {
  int64_t device = 0; ///< as the tool numbers them
  uint64_t launches = 0;
  uint64_t span_ns = 0;
  uint64_t kernel_ns = 0;  ///< with at least one kernel
  uint64_t copy_ns = 0;    ///< with at least one copy or memset
  uint64_t overlap_ns = 0; ///< of that, beside a kernel
  uint64_t busy_ns = 0;    ///< with a kernel or a copy
  /// Gaps in which a launch can be what is waited for. The rest of the idle time is the host's.
  uint64_t launch_gap_ns = 0;
  uint64_t launch_gaps = 0;
};

/// The GPU that all traced kernels ran on, where the tool tells. Empty: several kinds, or not told.
struct trace_gpu {
  std::string name;
  std::string architecture; ///< "sm_90"
  uint64_t multiprocessors = 0;
};

/// What rocm-smi says of one GPU.
struct gpu_reading {
  std::string card; ///< "card0"
  std::string name;
  std::string architecture;
  std::optional<double> edge_celsius, junction_celsius, memory_celsius;
  std::optional<double> core_mhz, memory_mhz;
  std::optional<double> use, memory_activity; ///< %
  std::optional<double> power_watts, power_limit_watts;
  std::optional<double> memory_bytes, memory_used_bytes;
};

struct trace_report {
  trace_tool tool = trace_tool::nsys;
  std::string version; ///< of the export's schema, where it is told
  trace_problem problem = trace_problem::none;
  std::string words; ///< on the problem
  uint64_t launches = 0;
  std::vector<trace_kernel> kernels; ///< those that took most first, at most 256
  std::vector<trace_copies> copies;  ///< at most 64 kinds
  std::vector<trace_device> devices; ///< at most 64
  trace_gpu gpu;
  std::vector<gpu_reading> readings; ///< at most 64
  std::vector<std::string> notes;    ///< what was left out, and why
};

std::string_view to_string(trace_tool x);
std::string_view to_string(trace_problem x);

/// What the cards' rules read of a kernel: its median time, its shape and, where the GPU is told,
/// its occupancy and its waves.
metric_values values_of(const trace_kernel& x, const trace_gpu& gpu);

/// What the rule for launches reads: all that one GPU did counts as one call, without the gaps in
/// which it waited for the host.
metric_values values_of(const trace_device& x);

} // namespace kernelmill

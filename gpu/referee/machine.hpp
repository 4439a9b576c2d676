#pragma once

// What this machine can do at most, measured when first needed: the floor under every honest
// time. Both figures only ever grow, and are measured again before anybody is accused.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelmill {

struct machine_peaks {
  double memory_bytes_per_second = 0; ///< reading a set twice the last-level cache, all cores
  double cache_bytes_per_second = 0;  ///< reading what fits the inner caches, all cores
  double flops_per_second = 0;        ///< fp32 multiply-adds, each counted as two, all cores
};

/// Thread safety: none.
class machine {
public:
  /// `cpus`: of the slot; none: those that this process has now, before it settles on one.
  explicit machine(std::vector<int> cpus, std::vector<int> timed_cpus = {});

  /// On a GPU: the core of the referee while it times, and that of what it times; empty: none to
  /// spare.
  const std::vector<int>& timed_cpus() const noexcept { return timed_cpus_; }

  const machine_peaks& peaks();
  void measure_again();

  /// Seconds below which no honest call can stay: bytes over bandwidth (that of memory when
  /// `set_bytes` exceeds the last-level cache, else that of the inner caches), or flops over peak,
  /// whichever is longer, with a margin of 5 %.
  double roofline_seconds(double bytes, double flops, double set_bytes);

  uint32_t cores() const { return static_cast<uint32_t>(cpus_.size()); }

  /// Takes note of what an empty call of a trusted process cost, and returns the least so far: more
  /// is the machine's doing.
  double least_overhead(double seconds);

  /// "Intel(R) Xeon(R) Processor @ 2.50GHz, 2 cores".
  std::string description() const;

private:
  std::vector<int> cpus_;
  std::vector<int> timed_cpus_;
  machine_peaks peaks_;
  std::optional<double> least_overhead_;
};

/// Bytes of the last-level cache as the system reports it; 32 MiB when it does not.
size_t last_level_cache_bytes();

} // namespace kernelmill

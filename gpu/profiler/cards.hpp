#pragma once

// Bottleneck cards: what limits a kernel, by rules over its metrics. Plain functions of numbers.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/profiler/metrics.hpp"

namespace kernelmill {

struct bottleneck_finding {
  std::string_view kind;             ///< "memory_bandwidth", "bank_conflicts", ...
  double confidence = 0;             ///< 0 to 1: of this being what the kernel's time goes into
  std::vector<std::string> evidence; ///< each names the numbers that it rests on
  std::array<std::string_view, 2> causes;
  std::string_view action;              ///< one thing to try
  std::vector<finding_line> lines = {}; ///< where in the source, most instructions first; if known
};

/// What a rule may look at: the metrics that it declares, so that none rests on what nobody
/// collects.
class declared_metrics {
public:
  declared_metrics(const metric_values& values, std::span<const metric> declared)
      : values_(values), declared_(declared) {
    // nop
  }

  std::optional<double> operator[](metric x) const;

private:
  const metric_values& values_;
  std::span<const metric> declared_;
};

struct bottleneck_rule {
  std::string_view kind;
  /// Whether it names a flaw that can be mended, not just the limit that is near. A flaw that is
  /// sure enough goes before any limit.
  bool is_flaw;
  std::vector<metric> reads;
  std::array<std::string_view, 2> causes;
  std::string_view action;
  /// Returns the confidence, 0 for "no", and adds evidence.
  double (*weigh)(const declared_metrics& x, std::vector<std::string>& evidence);
};

std::span<const bottleneck_rule> bottleneck_rules();

/// What the rules find, the likeliest limit first. Empty: nothing is known that a rule could use.
std::vector<bottleneck_finding> read_cards(const metric_values& x);

/// Of several kernels of one call: the one that takes the most time, or without times the first;
/// nothing of an empty list.
const kernel_metrics* costliest(std::span<const kernel_metrics> kernels);

} // namespace kernelmill

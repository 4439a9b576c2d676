#pragma once

// What the library in a program's processes (gpu/program/native) wrote to its referee.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

/// Times of one process, by clocks in it.
struct program_times {
  double kernel_seconds = 0;
  uint64_t kernels = 0;
  double other_seconds = 0; ///< of copies and fills
  double range_kernel_seconds = 0;
  uint64_t range_kernels = 0;
  double range_wall_seconds = 0;
  uint64_t ranges = 0;
};

struct program_reports {
  std::vector<std::string> endings;   ///< "test.out returned 0", sorted
  std::vector<std::string> replaced;  ///< "test.out defines exit", sorted, each once
  std::vector<std::string> problems;  ///< why there are no times
  std::optional<program_times> times; ///< sums over processes
};

/// Lines without the secret are passed over, as anybody may write them.
program_reports read_reports(std::string_view text, std::string_view secret);

/// The first of `wanted` that `found` lacks; nothing where it has all. Both are sorted.
std::optional<std::string> first_missing(const std::vector<std::string>& wanted,
                                         const std::vector<std::string>& found);

/// The last "COMPUTE_EVAL_TIME_MS: 1.5" of a text, in seconds; nothing where there is none, or it
/// is no positive number.
std::optional<double> printed_seconds(std::string_view text);

} // namespace kernelmill

#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tests/oracles/landscape.hpp"

namespace kernelmill::oracles {

/// Speedups of real kernels as the referee has measured them: a table of
/// tests/bench/measure_variants.py. The policy is that of tests/bench/matmul_variants.py: it
/// changes up to three choices of the plain kernel and up to two of any other, and 1 answer in 5 is
/// broken. A time is off by as much as its interval says.
class measured_landscape : public landscape {
public:
  /// The first line has the number of values of each choice; each further one the values of a
  /// kernel, its niche, and its speedup with both bounds. Nothing: the text is no such table, or
  /// lacks the kernel that everything begins with.
  static std::optional<measured_landscape> read(std::istream& from);

  /// The same kernels, other draws.
  void seed(uint64_t x) { seed_ = x; }
  size_t size() const noexcept { return kernels_.size(); }

  double doublings(uint32_t kernel) const override;
  double optimum() const override { return optimum_; }
  search::node expand(uint32_t ordinal, const search::node* parent) const override;

  /// An answer of a policy to which all kernels are equally likely.
  search::node any(uint32_t ordinal) const;

private:
  struct measured_kernel {
    std::string niche;
    double estimate = 0, low = 0, high = 0; ///< 0: it was never timed
  };

  search::node answered(uint32_t kernel, uint32_t ordinal) const;

  uint64_t seed_ = 0;
  std::vector<uint32_t> values_; ///< of each choice, their number
  std::vector<measured_kernel> kernels_;
  double optimum_ = 0;
};

} // namespace kernelmill::oracles

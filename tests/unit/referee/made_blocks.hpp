#pragma once

// Blocks that tests make up.

#include <cstddef>
#include <vector>

#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

inline timed_block block(double reference, double candidate) {
  return {{reference, reference}, {candidate, candidate}};
}

// Blocks whose speedup is 2, with noise that a seed decides.
inline std::vector<timed_block> noisy(size_t n, unsigned seed, double noise) {
  std::vector<timed_block> result;
  unsigned state = seed * 2654435761u + 1;
  for (size_t i = 0; i < n; ++i) {
    auto draw = [&] {
      state = state * 1664525u + 1013904223u;
      return 1 + noise * (static_cast<double>(state >> 8) / 0x1p24 - 0.5);
    };
    result.push_back({{2 * draw(), 2 * draw()}, {draw(), draw()}});
  }
  return result;
}

} // namespace kernelmill

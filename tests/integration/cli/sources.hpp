#pragma once

// Sources that several tests of commands offer.

#include <string>

namespace kernelmill::test {

/// Right for the task native/row_sum, on a CPU.
inline const std::string row_sum =
    R"(extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int j = 0; j < cols; ++j) sum += x[(long)i * cols + j];
    y[i] = (float)sum;
  }
}
)";

} // namespace kernelmill::test

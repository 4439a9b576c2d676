#include <algorithm>

// Blocks of 16 x 16: 16 lines are read whole and 16 lines written whole, all of them in L1.
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  constexpr long side = 16;
  for (long i = 0; i < rows; i += side) {
    for (long j = 0; j < cols; j += side) {
      const long height = std::min(side, rows - i), width = std::min(side, cols - j);
      if (height == side && width == side) {
        float block[side][side];
        for (long r = 0; r < side; ++r)
          for (long s = 0; s < side; ++s) block[s][r] = x[(i + r) * cols + j + s];
        for (long s = 0; s < side; ++s)
          for (long r = 0; r < side; ++r) y[(j + s) * rows + i + r] = block[s][r];
      } else {
        for (long s = 0; s < width; ++s)
          for (long r = 0; r < height; ++r) y[(j + s) * rows + i + r] = x[(i + r) * cols + j + s];
      }
    }
  }
}

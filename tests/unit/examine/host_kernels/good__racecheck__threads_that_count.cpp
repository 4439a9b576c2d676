#include <atomic>
#include <thread>

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  std::atomic<int> done = 0;
  auto half = [&](int from, int to) {
    for (int r = from; r < to; ++r) {
      float s = 0;
      for (int j = 0; j < cols; ++j) s += x[r * cols + j];
      y[r] = s;
    }
    for (int i = 0; i < 1000; ++i) ++done;
  };
  std::thread first{half, 0, rows / 2};
  std::thread second{half, rows / 2, rows};
  first.join();
  second.join();
}

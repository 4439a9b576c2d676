// How much the time of one kernel differs between sets of buffers, and between calls with one set:
// the quickstart's matrix product, on tensors of its task's timed shape, evicted before each call.
//   places_bench [SETS] [CALLS]      24 sets, 60 calls with each

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gpu/referee/buffers.hpp"

extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k);

namespace {

using kernelmill::shared_buffer;

constexpr int m = 128, n = 112, k = 96;

struct tensors {
  shared_buffer a, b, c;
};

tensors fresh_tensors() {
  auto make = [](int count) { return shared_buffer::create(4 * static_cast<size_t>(count), true); };
  return {make(m * k).value(), make(k * n).value(), make(m * n).value()};
}

float* floats(shared_buffer& x) {
  return reinterpret_cast<float*>(x.payload());
}

double microseconds_of_a_call(tensors& x) {
  for (auto* buffer : {&x.a, &x.b, &x.c}) {
    for (size_t i = 0; i < buffer->bytes() / 4; ++i)
      floats(*buffer)[i] = static_cast<float>(i % 97) / 97 - 0.5f;
    buffer->flush();
  }
  auto start = std::chrono::steady_clock::now();
  solve(floats(x.a), floats(x.b), floats(x.c), m, n, k);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

} // namespace

int main(int argc, char** argv) {
  int sets = argc > 1 ? std::atoi(argv[1]) : 24;
  int calls = argc > 2 ? std::atoi(argv[2]) : 60;
  if (sets < 2 || calls < 4) {
    std::fprintf(stderr, "places_bench: at least 2 sets and 4 calls\n");
    return 2;
  }
  std::vector<double> medians, widths;
  std::vector<tensors> kept; // so that no set gets the pages of the one before it
  for (int i = 0; i < sets; ++i) {
    kept.push_back(fresh_tensors());
    std::vector<double> times(static_cast<size_t>(calls));
    for (auto& x : times) x = microseconds_of_a_call(kept.back());
    std::sort(times.begin(), times.end());
    medians.push_back(times[times.size() / 2]);
    widths.push_back((times[times.size() * 3 / 4] - times[times.size() / 4]) / 2 / medians.back());
  }
  std::sort(medians.begin(), medians.end());
  std::sort(widths.begin(), widths.end());
  std::printf(
      "medians of %d sets: %.1f to %.1f us; half of the middle half of %d calls with a set: "
      "%.1f %% (median)\n",
      sets, medians.front(), medians.back(), calls, 100 * widths[widths.size() / 2]);
}

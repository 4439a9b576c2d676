#include "gpu/referee/machine.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <thread>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/referee/clock.hpp"
#include "gpu/task/vectorized.hpp"

namespace kernelmill {

namespace {

constexpr size_t inner_bytes = 128 << 10; // of each core: in its second-level cache
constexpr size_t memory_room = 96 << 20;  // of all cores, at most
constexpr double margin = 1.05;

KERNELMILL_VECTORIZED uint64_t sum_words(const uint64_t* x, size_t n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

using lanes = float __attribute__((vector_size(64)));

// Ten independent sums hide the latency of two AVX-512 units; with AVX2 they spill, and six do it.
template <int N>
inline __attribute__((always_inline)) float multiply_add(size_t rounds, float factor) {
  lanes x[N];
  for (int i = 0; i < N; ++i) x[i] = lanes{} + static_cast<float>(i);
  for (size_t r = 0; r < rounds; ++r)
    for (int i = 0; i < N; ++i) x[i] = x[i] * factor + 0.001f;
  lanes sum{};
  for (int i = 0; i < N; ++i) sum += x[i];
  return sum[0] + sum[5];
}

KERNELMILL_VECTORIZED float multiply_add_10(size_t rounds, float factor) {
  return multiply_add<10>(rounds, factor);
}
KERNELMILL_VECTORIZED float multiply_add_6(size_t rounds, float factor) {
  return multiply_add<6>(rounds, factor);
}

std::atomic<uint64_t> sink{0}; // keeps the loops above

// Runs `work(i)` on every core at once and returns the seconds of all together.
double on_all(const std::vector<int>& cpus, const std::function<void(size_t)>& work) {
  std::atomic<size_t> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cpus.size(); ++i)
    threads.emplace_back([&, i] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpus[i], &set);
      ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
      ++ready;
      while (!go) std::this_thread::yield();
      work(i);
    });
  while (ready < cpus.size()) std::this_thread::yield();
  double started = now_seconds();
  go = true;
  for (auto& x : threads) x.join();
  return now_seconds() - started;
}

double best_rate(int tries, const std::function<double()>& one) {
  double best = 0;
  for (int i = 0; i < tries; ++i) best = std::max(best, one());
  return best;
}

std::vector<int> all_cpus() {
  cpu_set_t set;
  std::vector<int> result;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) result.push_back(i);
  return result;
}

} // namespace

size_t last_level_cache_bytes() {
  long found = 0;
  for (int name : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    found = std::max(found, ::sysconf(name));
  return found > 0 ? static_cast<size_t>(found) : size_t{32} << 20;
}

void machine::measure_again() {
  auto cpus = cpus_.empty() ? all_cpus() : cpus_;
  double cores = static_cast<double>(cpus.size());
  size_t share = std::min(memory_room, 2 * last_level_cache_bytes()) / cpus.size() / 8;
  std::vector<uint64_t> words(share * cpus.size(), 1);
  auto memory = best_rate(3, [&] {
    double seconds =
        on_all(cpus, [&](size_t i) { sink += sum_words(words.data() + i * share, share); });
    return static_cast<double>(words.size() * 8) / seconds;
  });
  constexpr size_t repeats = 200;
  auto cache = best_rate(3, [&] {
    double seconds = on_all(cpus, [&](size_t i) {
      for (size_t r = 0; r < repeats; ++r)
        sink += sum_words(words.data() + i * share, std::min(share, inner_bytes / 8));
    });
    return cores * repeats * inner_bytes / seconds;
  });
  constexpr size_t rounds = 100'000;
  auto rate = [&](float (*loop)(size_t, float), double sums) {
    return best_rate(2, [&] {
      double seconds =
          on_all(cpus, [&](size_t) { sink += static_cast<uint64_t>(loop(rounds, 0.999f)); });
      return cores * rounds * sums * 32 / seconds; // 16 lanes, two operations each
    });
  };
  auto flops = std::max(rate(multiply_add_10, 10), rate(multiply_add_6, 6));
  peaks_.memory_bytes_per_second = std::max(peaks_.memory_bytes_per_second, memory);
  peaks_.cache_bytes_per_second = std::max({peaks_.cache_bytes_per_second, cache, memory});
  peaks_.flops_per_second = std::max(peaks_.flops_per_second, flops);
}

const machine_peaks& machine::peaks() {
  if (peaks_.flops_per_second <= 0) measure_again();
  return peaks_;
}

double machine::roofline_seconds(double bytes, double flops, double set_bytes) {
  const auto& x = peaks();
  bool in_cache = set_bytes <= static_cast<double>(last_level_cache_bytes());
  double bandwidth = in_cache ? x.cache_bytes_per_second : x.memory_bytes_per_second;
  return std::max(bytes / bandwidth, flops / x.flops_per_second) / margin;
}

std::string machine::description() const {
  std::ifstream in{"/proc/cpuinfo"};
  std::string line;
  std::string name = "CPU";
  while (std::getline(in, line))
    if (auto colon = line.find(": ");
        line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      name = line.substr(colon + 2);
      break;
    }
  auto count = cpus_.empty() ? all_cpus().size() : cpus_.size();
  return name + ", " + std::to_string(count) + (count == 1 ? " core" : " cores");
}

} // namespace kernelmill

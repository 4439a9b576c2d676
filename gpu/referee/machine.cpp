#include "gpu/referee/machine.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>

#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/referee/clock.hpp"
#include "gpu/task/vectorized.hpp"

namespace kernelmill {

namespace {

constexpr size_t inner_bytes = 16 << 10; // of one core: in its first-level cache
constexpr size_t memory_room = 96 << 20; // at most
constexpr size_t memory_burst = 2 << 20; // 0.2 to 0.5 ms
constexpr int flops_rounds = 4'000;      // about 20 us
constexpr double margin = 1.05;

KERNELMILL_VECTORIZED uint64_t sum_words(const uint64_t* x, size_t n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

// Twelve independent sums hide the latency of two units, and fit into the registers of each set.
// One function for each instruction set, in vectors of its own width: GCC keeps wider ones in
// memory. Fused where the set can, as the compiler of candidates does it.
constexpr int sums = 12;

#define KERNELMILL_MULTIPLY_ADD(name, set, lanes, step)                                            \
  __attribute__((target(set))) float name(size_t rounds, float factor) {                           \
    const lanes by = lanes{} + factor;                                                             \
    const lanes more = lanes{} + 0.001f;                                                           \
    lanes x[sums];                                                                                 \
    for (int i = 0; i < sums; ++i) x[i] = lanes{} + static_cast<float>(i);                         \
    for (size_t r = 0; r < rounds; ++r)                                                            \
      _Pragma("GCC unroll 16") for (int i = 0; i < sums; ++i) x[i] = step;                         \
    lanes sum{};                                                                                   \
    for (int i = 0; i < sums; ++i) sum += x[i];                                                    \
    return sum[0] + sum[2];                                                                        \
  }
KERNELMILL_MULTIPLY_ADD(multiply_add_512, "avx512f", __m512, _mm512_fmadd_ps(x[i], by, more))
KERNELMILL_MULTIPLY_ADD(multiply_add_256, "avx2,fma", __m256, _mm256_fmadd_ps(x[i], by, more))
KERNELMILL_MULTIPLY_ADD(multiply_add_128, "sse2", __m128, x[i] * by + more)
#undef KERNELMILL_MULTIPLY_ADD

uint64_t sink = 0; // keeps the loops above; its value means nothing

// The best of many short bursts on one core: each is shorter than a time slice, so some of them
// run undisturbed on a busy machine. A peak that is too low would accuse the innocent.
double best_rate(int bursts, const std::function<double(int)>& work) {
  double best = 0;
  for (int i = 0; i < bursts; ++i) {
    double started = now_seconds();
    double amount = work(i);
    best = std::max(best, amount / (now_seconds() - started));
  }
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

machine::machine(std::vector<int> cpus, std::vector<int> timed_cpus)
    : cpus_(cpus.empty() ? all_cpus() : std::move(cpus)), timed_cpus_(std::move(timed_cpus)) {
  // nop
}

size_t last_level_cache_bytes() {
  long found = 0;
  for (int name : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    found = std::max(found, ::sysconf(name));
  return found > 0 ? static_cast<size_t>(found) : size_t{32} << 20;
}

// One core's peak times the number of cores: more than cores that share a memory bus can reach,
// which is the side to err on.
void machine::measure_again() {
  double cores = this->cores();
  size_t room = std::min(memory_room, 2 * last_level_cache_bytes()) / memory_burst * memory_burst;
  std::vector<uint64_t> words(room / 8, 1);
  auto bursts = static_cast<int>(room / memory_burst);
  auto memory = best_rate(2 * bursts, [&](int i) {
    sink += sum_words(words.data() + static_cast<size_t>(i % bursts) * (memory_burst / 8),
                      memory_burst / 8);
    return static_cast<double>(memory_burst);
  });
  auto cache = best_rate(40, [&](int) {
    for (int r = 0; r < 16; ++r) sink += sum_words(words.data(), inner_bytes / 8);
    return 16.0 * inner_bytes;
  });
  auto flops_rate = [&](float (*loop)(size_t, float), int lanes) {
    return best_rate(40, [&](int) {
      sink += static_cast<uint64_t>(loop(size_t{flops_rounds}, 0.999f));
      return 2.0 * flops_rounds * sums * lanes;
    });
  };
  double flops = flops_rate(multiply_add_128, 4);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    flops = std::max(flops, flops_rate(multiply_add_256, 8));
  if (__builtin_cpu_supports("avx512f")) flops = std::max(flops, flops_rate(multiply_add_512, 16));
  peaks_.memory_bytes_per_second = std::max(peaks_.memory_bytes_per_second, memory * cores);
  peaks_.cache_bytes_per_second =
      std::max({peaks_.cache_bytes_per_second, cache * cores, memory * cores});
  peaks_.flops_per_second = std::max(peaks_.flops_per_second, flops * cores);
}

double machine::least_overhead(double seconds) {
  least_overhead_ = std::min(seconds, least_overhead_.value_or(seconds));
  return *least_overhead_;
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
  auto count = cores();
  return name + ", " + std::to_string(count) + (count == 1 ? " core" : " cores");
}

} // namespace kernelmill

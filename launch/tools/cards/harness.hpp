#pragma once

// Compares the two forms of a snippet: equal outputs, then the time of a call. build.py makes a
// program of this header and of all pairs of a language.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define KM_GPU(name) cuda##name
#elif defined(__HIPCC__)
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#define KM_GPU(name) hip##name
#endif

namespace cards {

struct argument {
  const char* type;
  size_t count;
  size_t bytes; ///< of one element
  bool out;
  uint32_t below; ///< integers are drawn from 0 to this
};

inline uint32_t next_random(uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<uint32_t>(state >> 33);
}

template <class T>
void fill_as(std::vector<char>& bytes, uint64_t& state, bool is_float, uint32_t below) {
  auto* p = reinterpret_cast<T*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i)
    p[i] = is_float ? static_cast<T>(static_cast<float>(next_random(state)) / 1073741824.0F - 1.0F)
                    : static_cast<T>(static_cast<float>(next_random(state) % below));
}

template <class T>
std::vector<double> values_as(const std::vector<char>& bytes) {
  auto* p = reinterpret_cast<const T*>(bytes.data());
  std::vector<double> result(bytes.size() / sizeof(T));
  for (size_t i = 0; i < result.size(); ++i) {
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>)
      result[i] = static_cast<double>(static_cast<float>(p[i]));
    else
      result[i] = static_cast<double>(p[i]);
  }
  return result;
}

/// Calls `visit` with a value of the element's type.
template <class F>
auto with_type(const char* type, F&& visit) {
  auto is = [&](const char* x) { return std::strcmp(type, x) == 0; };
#if defined(__CUDACC__) || defined(__HIPCC__)
  if (is("half")) return visit(__half{}, true);
#endif
#if defined(__CUDACC__)
  if (is("bf16")) return visit(__nv_bfloat16{}, true);
#endif
  if (is("float")) return visit(float{}, true);
  if (is("double")) return visit(double{}, true);
  if (is("int")) return visit(int32_t{}, false);
  if (is("uint")) return visit(uint32_t{}, false);
  if (is("int64")) return visit(int64_t{}, false);
  if (is("int8")) return visit(int8_t{}, false);
  if (is("uint16")) return visit(uint16_t{}, false);
  return visit(uint8_t{}, false);
}

#ifdef KM_GPU
inline void* reserve(size_t bytes) {
  void* p = nullptr;
  (void)KM_GPU(Malloc)(&p, bytes);
  return p;
}
inline void put(void* to, const std::vector<char>& from) {
  (void)KM_GPU(Memcpy)(to, from.data(), from.size(), KM_GPU(MemcpyHostToDevice));
}
inline void get(std::vector<char>& to, const void* from) {
  (void)KM_GPU(Memcpy)(to.data(), from, to.size(), KM_GPU(MemcpyDeviceToHost));
}
constexpr double window = 3e6; ///< nanoseconds of calls that are timed together
inline bool finish() {
  return KM_GPU(DeviceSynchronize)() == KM_GPU(Success) &&
         KM_GPU(GetLastError)() == KM_GPU(Success);
}
#else
inline void* reserve(size_t bytes) {
  return std::aligned_alloc(64, (bytes + 127) / 64 * 64);
}
inline void put(void* to, const std::vector<char>& from) {
  std::memcpy(to, from.data(), from.size());
}
inline void get(std::vector<char>& to, const void* from) {
  std::memcpy(to.data(), from, to.size());
}
constexpr double window = 3e5;
inline bool finish() {
  return true;
}
#endif

/// Nanoseconds of `calls` calls.
inline double time_of(void (*f)(void**), void** arguments, int calls) {
  finish();
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) f(arguments);
  finish();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

/// The outputs after one call, whose buffers held `garbage` before it.
inline std::vector<std::vector<double>>
outputs_of(void (*f)(void**), const std::vector<argument>& list, void** at, char garbage) {
  std::vector<std::vector<double>> result;
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].out) put(at[i], std::vector<char>(list[i].count * list[i].bytes, garbage));
  f(at);
  finish();
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].out) continue;
    std::vector<char> bytes(list[i].count * list[i].bytes);
    get(bytes, at[i]);
    result.push_back(
        with_type(list[i].type, [&](auto x, bool) { return values_as<decltype(x)>(bytes); }));
  }
  return result;
}

/// The largest difference, relative to the largest magnitude of its output; infinite for NaN.
inline double worst_error(const std::vector<std::vector<double>>& a,
                          const std::vector<std::vector<double>>& b) {
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    double largest = 1e-30, difference = 0;
    for (size_t i = 0; i < a[k].size(); ++i) {
      if (a[k][i] == b[k][i]) continue;
      auto d = std::abs(a[k][i] - b[k][i]);
      difference = std::isfinite(d) ? std::max(difference, d) : INFINITY;
    }
    for (double x : a[k])
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

/// Prints one line of JSON: the error, and with `seconds` > 0 the least time of a call of each
/// form.
inline int compare(const std::vector<argument>& list, void (*before_of)(void**),
                   void (*after_of)(void**), double seconds) {
  uint64_t state = 1;
  std::vector<void*> at;
  for (const auto& x : list) {
    at.push_back(reserve(x.count * x.bytes));
    std::vector<char> bytes(x.count * x.bytes);
    with_type(x.type, [&](auto v, bool is_float) {
      fill_as<decltype(v)>(bytes, state, is_float, x.below);
      return 0;
    });
    put(at.back(), bytes);
  }
  auto error = worst_error(outputs_of(before_of, list, at.data(), 0x11),
                           outputs_of(after_of, list, at.data(), 0x22));
  if (!finish()) error = INFINITY;
  double before[2] = {}, after[2] = {}; // of samples with even and with odd numbers
  if (seconds > 0) {
    auto calls_of = [&](void (*f)(void**)) {
      return std::max(1, static_cast<int>(window / std::max(1.0, time_of(f, at.data(), 1))));
    };
    auto b = calls_of(before_of), a = calls_of(after_of);
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (auto* x : {before, after}) x[0] = x[1] = INFINITY;
    // In turns and short, so that what else the machine does meets both; the least, since that
    // only adds.
    for (int n = 0; n < 10 || std::chrono::steady_clock::now() < until; ++n) {
      before[n % 2] = std::min(before[n % 2], time_of(before_of, at.data(), b) / b);
      after[n % 2] = std::min(after[n % 2], time_of(after_of, at.data(), a) / a);
    }
  }
  std::printf("{\"error\": %.9g, \"before\": [%.9g, %.9g], \"after\": [%.9g, %.9g]}\n",
              std::isfinite(error) ? error : 1e300, before[0], before[1], after[0], after[1]);
  return 0;
}

} // namespace cards

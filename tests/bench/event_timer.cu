// The plain way to time a kernel, for comparison: load the library, make buffers, warm up, and take CUDA events.
//   event_timer [--guards] LIBRARY CALLS ARGUMENT...    f32:COUNT (normal), i32:COUNT:LOW:HIGH (below HIGH) or a scalar's value
// Prints milliseconds: the median of CALLS single calls, each after the caches were filled with clean lines; events around
// 20 calls that were queued behind a delay, divided by 20; and the host's clock over 64 calls back to back until the GPU is
// done, divided by 64. Of the last two, the median of rows, a quarter of CALLS: 3 at least, 9 at most.
//   event_timer [--guards] -    does so for each line of its input, in one process: making a context takes longer than all calls.
//                    Words lie between tabs; a library that does not load or finds no memory is answered by "failed", any other
//                    fault ends the process.
// --guards: a KiB behind each buffer, as the referee has it. Without, buffers of whole MiB follow one another, and a kernel that reads
// one and writes another is 25 % slower on an H100 where they are 128 MiB apart than with a gap (softmax_persistent of the corpus).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <dlfcn.h>

// Numbers in which neighbours have nothing to do with one another (splitmix64).
__device__ unsigned long long mixed(size_t i, unsigned seed) {
  unsigned long long h = (i + (size_t(seed) << 32) + 1) * 0x9e3779b97f4a7c15ull;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}

__global__ void fill_f32(float* x, size_t n, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    auto h = mixed(i, seed);
    float a = (float(h >> 40) + 0.5f) * 0x1p-24f, b = float(h & 0xffffff) * 0x1p-24f;
    x[i] = sqrtf(-2.0f * logf(a)) * cospif(2.0f * b);
  }
}

__global__ void fill_i32(int* x, size_t n, int low, unsigned width, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x)
    x[i] = low + int((mixed(i, seed) >> 32) * width >> 32);
}

// Fills the caches with lines that need not be written back, as a flush that writes would leave them.
__global__ void read_all(const uint4* x, size_t n, unsigned* sink) {
  unsigned sum = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x)
    sum ^= x[i].x ^ x[i].w;
  if (sum == 0x12345u) *sink = sum;
}

// Keeps the GPU until the host has queued what comes next.
__global__ void delay(unsigned long long nanoseconds) {
  unsigned long long from = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(from));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - from < nanoseconds);
}

using any_function = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                              int64_t, int64_t, int64_t, int64_t, int64_t);

constexpr size_t flushed_bytes = 256 << 20;
constexpr size_t bytes_of_sets = size_t(2) << 30;
constexpr int most_sets = 32;
constexpr size_t guard = 1024, large = 8 << 20, page = 2 << 20; // as gpu/referee/device/arena.cpp

bool has_guards = false;

size_t stride_of(size_t bytes) {
  size_t unit = bytes >= large ? page : guard;
  return (bytes + guard + unit - 1) / unit * unit;
}

struct argument {
  bool is_buffer = false, is_float = false;
  int64_t value = 0; // of a scalar
  size_t count = 0;
  int low = 0;
  unsigned width = 1;
};

argument parse(const char* text) {
  argument x;
  x.is_float = std::strncmp(text, "f32:", 4) == 0;
  x.is_buffer = x.is_float || std::strncmp(text, "i32:", 4) == 0;
  if (!x.is_buffer) {
    x.value = std::atoll(text);
    return x;
  }
  char* end = nullptr;
  x.count = std::strtoull(text + 4, &end, 10);
  if (x.is_float || *end == 0) return x;
  x.low = int(std::strtol(end + 1, &end, 10));
  x.width = unsigned(std::max(1l, std::strtol(end + 1, &end, 10) - x.low));
  return x;
}

template <class T>
T median(std::vector<T> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

// Memory of one job.
class buffers {
public:
  ~buffers() {
    for (void* x : all_) cudaFree(x);
  }
  void* get(size_t bytes) {
    void* result = nullptr;
    if (cudaMalloc(&result, bytes) != cudaSuccess) return nullptr;
    all_.push_back(result);
    return result;
  }

private:
  std::vector<void*> all_;
};

enum outcome { done, failed, lost }; // lost: the context

outcome time_one(const std::vector<std::string>& words) {
  void* library = dlopen(words.at(0).c_str(), RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), failed;
  auto solve = reinterpret_cast<any_function>(dlsym(library, "solve"));
  if (solve == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), failed;
  int calls = std::atoi(words.at(1).c_str());
  std::vector<argument> arguments;
  size_t bytes = 0;
  for (size_t i = 2; i < words.size() && i < 14; ++i) {
    arguments.push_back(parse(words[i].c_str()));
    bytes += 4 * arguments.back().count;
  }
  buffers memory;
  // So many sets of buffers that a row finds nothing in the caches.
  int sets = int(std::clamp(bytes_of_sets / std::max(bytes, size_t(1)), size_t(4), size_t(most_sets)));
  std::vector<std::vector<int64_t>> a(sets, std::vector<int64_t>(12));
  std::vector<char*> together(arguments.size()); // all sets of an argument
  for (size_t i = 0; has_guards && i < arguments.size(); ++i)
    if (arguments[i].is_buffer)
      together[i] = static_cast<char*>(memory.get(stride_of(4 * arguments[i].count) * size_t(sets)));
  for (int s = 0; s < sets; ++s)
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto& x = arguments[i];
      a[s][i] = x.value;
      if (!x.is_buffer) continue;
      void* buffer = !has_guards ? memory.get(4 * x.count)
                                 : together[i] ? together[i] + size_t(s) * stride_of(4 * x.count) : nullptr;
      if (buffer == nullptr) return std::fprintf(stderr, "memory\n"), failed;
      auto seed = unsigned(s * 100 + i);
      if (x.is_float)
        fill_f32<<<2048, 256>>>(static_cast<float*>(buffer), x.count, seed);
      else
        fill_i32<<<2048, 256>>>(static_cast<int*>(buffer), x.count, x.low, x.width, seed);
      a[s][i] = reinterpret_cast<int64_t>(buffer);
    }
  int next = 0; // set
  auto call = [&] {
    auto& v = a[next++ % sets];
    solve(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]);
  };
  auto* flushed = static_cast<uint4*>(memory.get(flushed_bytes));
  if (flushed == nullptr) return std::fprintf(stderr, "memory\n"), failed;
  cudaMemset(flushed, 1, flushed_bytes);
  auto flush = [&] {
    read_all<<<2048, 256>>>(flushed, flushed_bytes / sizeof(uint4), reinterpret_cast<unsigned*>(flushed));
  };
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  auto between_events = [&](int count) {
    cudaEventRecord(from);
    for (int i = 0; i < count; ++i) call();
    cudaEventRecord(to);
    cudaEventSynchronize(to);
    float result = 0;
    cudaEventElapsedTime(&result, from, to);
    return result / float(count);
  };
  for (int i = 0; i < 5; ++i) call();
  std::vector<float> alone, rows;
  for (int i = 0; i < calls; ++i) {
    flush();
    alone.push_back(between_events(1));
  }
  int count = std::clamp(calls / 4, 3, 9);
  for (int r = 0; r < count; ++r) {
    flush();
    delay<<<1, 1>>>(2'000'000);
    rows.push_back(between_events(20));
  }
  std::vector<double> walls;
  for (int r = 0; r < count; ++r) {
    flush();
    cudaDeviceSynchronize();
    auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 64; ++i) call();
    cudaDeviceSynchronize();
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    walls.push_back(took.count() / 64);
  }
  if (auto code = cudaDeviceSynchronize(); code != cudaSuccess)
    return std::fprintf(stderr, "%s\n", cudaGetErrorString(code)), lost;
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  std::printf("%.6f %.6f %.6f\n", median(alone), median(rows), median(walls));
  return done;
}

std::vector<std::string> parts(const std::string& line) {
  std::vector<std::string> result{""};
  for (char c : line) {
    if (c == '\t')
      result.emplace_back();
    else
      result.back() += c;
  }
  return result;
}

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--guards") == 0) {
    has_guards = true;
    ++argv, --argc;
  }
  if (argc < 2 || std::strcmp(argv[1], "-") != 0)
    return argc < 3 || time_one({argv + 1, argv + argc}) != done ? 1 : 0;
  for (std::string line; std::getline(std::cin, line);) {
    auto words = parts(line);
    auto found = words.size() < 2 ? failed : time_one(words);
    if (found == lost) return 1;
    if (found == failed) std::printf("failed\n");
    std::fflush(stdout);
  }
}

// What the GPU's own clock says, by CUPTI: opened at run time, with the few places of its records
// that have been where they are since CUDA 11.

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <dlfcn.h>
#include <pthread.h>

#include "gpu/program/native/watch.hpp"

namespace kernelmill::watch {

namespace {

constexpr uint32_t kind_copy = 1, kind_fill = 2, kind_driver = 4, kind_runtime = 5,
                   kind_kernel = 10, kind_correlation = 39;
constexpr uint32_t correlation_custom = 3;
constexpr size_t buffer_bytes = size_t{2} << 20;
constexpr size_t most_work = size_t{4} << 20; // pieces that are kept

using result = int; // CUptiResult; 0: fine
struct library {
  result (*register_callbacks)(void (*)(uint8_t**, size_t*, size_t*),
                               void (*)(void*, uint32_t, uint8_t*, size_t, size_t)) = nullptr;
  result (*enable)(uint32_t) = nullptr;
  result (*flush_all)(uint32_t) = nullptr;
  result (*next)(uint8_t*, size_t, uint8_t**) = nullptr;
  result (*push)(uint32_t, uint64_t) = nullptr;
  result (*pop)(uint32_t, uint64_t*) = nullptr;
};
library cupti;
bool is_open = false;

template <class T>
T field(const uint8_t* record, size_t offset) {
  T x;
  memcpy(&x, record + offset, sizeof x);
  return x;
}

struct work {
  uint64_t ns;
  uint32_t correlation;
  bool kernel;
  bool named; // its name counts
};

template <class T>
struct list {
  T* data = nullptr;
  size_t size = 0;
  size_t room = 0;
  bool full = false;

  void add(const T& x) {
    if (size == room) {
      size_t more = room == 0 ? 4096 : 2 * room;
      auto* grown = more > most_work ? nullptr : static_cast<T*>(realloc(data, more * sizeof(T)));
      full = full || grown == nullptr;
      if (grown == nullptr) return;
      data = grown;
      room = more;
    }
    data[size++] = x;
  }
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
list<work> done;
list<uint32_t> counted; // correlations of launches within ranges that count
bool told = false;

void take(const uint8_t* record) {
  auto kind = field<uint32_t>(record, 0);
  if (kind == kind_correlation) {
    if (field<uint32_t>(record, 4) == correlation_custom &&
        field<uint64_t>(record, 8) == counted_id)
      counted.add(field<uint32_t>(record, 16));
    return;
  }
  bool kernel = kind == kind_kernel;
  if (!kernel && kind != kind_copy && kind != kind_fill) return;
  auto start = field<uint64_t>(record, 16), end = field<uint64_t>(record, 24);
  const char* name = kernel ? field<const char*>(record, 104) : nullptr;
  done.add({end > start ? end - start : 0, field<uint32_t>(record, kernel ? 92 : 44), kernel,
            name == nullptr || counts(name)});
}

void lend_buffer(uint8_t** buffer, size_t* size, size_t* records) {
  *buffer = static_cast<uint8_t*>(aligned_alloc(64, buffer_bytes));
  *size = *buffer != nullptr ? buffer_bytes : 0;
  *records = 0;
}

void take_buffer(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  pthread_mutex_lock(&mutex);
  uint8_t* record = nullptr;
  while (valid > 0 && cupti.next(buffer, valid, &record) == 0) take(record);
  pthread_mutex_unlock(&mutex);
  free(buffer);
}

int by_number(const void* a, const void* b) {
  auto x = *static_cast<const uint32_t*>(a), y = *static_cast<const uint32_t*>(b);
  return x < y ? -1 : x > y;
}

template <class T>
bool find(void* from, const char* name, T& into) {
  into = reinterpret_cast<T>(dlsym(from, name));
  return into != nullptr;
}

} // namespace

bool open_activity(const char* path) {
  if (*path == 0 || strcmp(path, "-") == 0) return false;
  void* opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    report("problem %.400s", dlerror());
    return false;
  }
  if (!find(opened, "cuptiActivityRegisterCallbacks", cupti.register_callbacks) ||
      !find(opened, "cuptiActivityEnable", cupti.enable) ||
      !find(opened, "cuptiActivityFlushAll", cupti.flush_all) ||
      !find(opened, "cuptiActivityGetNextRecord", cupti.next) ||
      !find(opened, "cuptiActivityPushExternalCorrelationId", cupti.push) ||
      !find(opened, "cuptiActivityPopExternalCorrelationId", cupti.pop)) {
    report("problem %.200s lacks a function", path);
    return false;
  }
  int failed = cupti.register_callbacks(lend_buffer, take_buffer);
  for (uint32_t kind :
       {kind_kernel, kind_copy, kind_fill, kind_runtime, kind_driver, kind_correlation})
    if (failed == 0) failed = cupti.enable(kind);
  if (failed != 0) report("problem CUPTI refuses activity: error %d", failed);
  is_open = failed == 0;
  return is_open;
}

void mark_launches(uint64_t id) {
  if (is_open) cupti.push(correlation_custom, id);
}

void unmark_launches() {
  uint64_t id = 0;
  if (is_open) cupti.pop(correlation_custom, &id);
}

// Of kernels mode: those whose name counts. Else the names are those of ranges.
void report_times(bool by_kernels) {
  if (told) return;
  told = true;
  if (is_open) cupti.flush_all(1);
  pthread_mutex_lock(&mutex);
  if (counted.size > 0) qsort(counted.data, counted.size, sizeof(uint32_t), by_number);
  uint64_t kernel_ns = 0, kernels = 0, other_ns = 0, range_ns = 0, range_kernels = 0;
  for (size_t i = 0; i < done.size; ++i) {
    const auto& x = done.data[i];
    if (!x.kernel) {
      other_ns += x.ns;
      continue;
    }
    if (by_kernels && !x.named) continue;
    kernel_ns += x.ns;
    ++kernels;
    if (counted.size == 0 ||
        bsearch(&x.correlation, counted.data, counted.size, sizeof(uint32_t), by_number) == nullptr)
      continue;
    range_ns += x.ns;
    ++range_kernels;
  }
  bool lost = done.full || counted.full;
  pthread_mutex_unlock(&mutex);
  if (lost) return report("problem more work than is kept");
  if (!is_open && ranges_seen == 0) return;
  report("times %llu %llu %llu %llu %llu %llu %llu", static_cast<unsigned long long>(kernel_ns),
         static_cast<unsigned long long>(kernels), static_cast<unsigned long long>(other_ns),
         static_cast<unsigned long long>(range_ns), static_cast<unsigned long long>(range_kernels),
         static_cast<unsigned long long>(wall_time_of_ranges),
         static_cast<unsigned long long>(ranges_seen));
}

} // namespace kernelmill::watch

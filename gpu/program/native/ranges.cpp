// Ranges of NVTX. Its headers load the library that NVTX_INJECTION64_PATH names and ask it for
// functions by number; the numbers and places are those of NVTX 3.

#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <time.h>

#include "gpu/program/native/watch.hpp"

namespace kernelmill::watch {

namespace {

constexpr size_t deepest = 64;

struct range_stack {
  bool counted[deepest];
  bool marked[deepest];
  size_t size;
  size_t counted_now;
  uint64_t began;
};
thread_local range_stack ranges __attribute__((tls_model("initial-exec")));

pthread_mutex_t sum_mutex = PTHREAD_MUTEX_INITIALIZER;

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// nvtxEventAttributes_t: version, size, category, colour type, colour, payload type, reserved,
// payload, message type, message.
const char* message_of(const void* attributes) {
  if (attributes == nullptr) return "";
  int32_t type = 0;
  const char* text = nullptr;
  auto bytes = static_cast<const char*>(attributes);
  memcpy(&type, bytes + 32, sizeof type);
  memcpy(&text, bytes + 40, sizeof text);
  // 1: text; 3: a handle of register_text(), which is the text. Wide characters have no name here.
  return (type == 1 || type == 3) && text != nullptr ? text : "";
}

int range_push(const char* name) {
  push_range(name != nullptr ? name : "");
  return static_cast<int>(ranges.size);
}
int range_push_wide(const wchar_t*) {
  return range_push("");
}
int range_push_full(const void* attributes) {
  return range_push(message_of(attributes));
}
int range_pop() {
  pop_range();
  return static_cast<int>(ranges.size);
}
uint64_t range_start(const char* name) {
  return static_cast<uint64_t>(range_push(name));
}
uint64_t range_start_full(const void* attributes) {
  return range_start(message_of(attributes));
}
void range_end(uint64_t) {
  pop_range();
}
int domain_push(void*, const void* attributes) {
  return range_push_full(attributes);
}
int domain_pop(void*) {
  return range_pop();
}
uint64_t domain_start(void*, const void* attributes) {
  return range_start_full(attributes);
}
void domain_end(void*, uint64_t) {
  pop_range();
}
void* register_text(void*, const char* text) {
  return strdup(text != nullptr ? text : "");
}
void* create_domain(const char*) {
  static int domain;
  return &domain;
}

using any_function = void (*)();
using function_table = any_function**;

template <class F>
void set(function_table table, unsigned size, unsigned at, F* function) {
  if (at < size && table[at] != nullptr) *table[at] = reinterpret_cast<any_function>(function);
}

} // namespace

void push_range(const char* name) {
  auto& x = ranges;
  bool has_place = x.size < deepest;
  bool counted = has_place && counts(name);
  if (has_place) {
    x.counted[x.size] = counted;
    // Only what counts is marked: a range that does not may lie in one that does.
    x.marked[x.size] = counted;
    if (counted) mark_launches(counted_id);
  }
  ++x.size;
  if (counted && x.counted_now++ == 0) x.began = now_ns();
}

void pop_range() {
  auto& x = ranges;
  if (x.size == 0) return;
  --x.size;
  if (x.size >= deepest || !x.counted[x.size]) return;
  if (x.marked[x.size]) unmark_launches();
  if (--x.counted_now > 0) return;
  pthread_mutex_lock(&sum_mutex);
  wall_time_of_ranges += now_ns() - x.began;
  ++ranges_seen;
  pthread_mutex_unlock(&sum_mutex);
}

} // namespace kernelmill::watch

// What NVTX calls, once, when a program first uses it.
extern "C" __attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  using namespace kernelmill::watch;
  struct callbacks {
    size_t size;
    int (*table_of)(int module, function_table* table, unsigned* size);
  };
  auto* found = static_cast<const callbacks*>(export_table(1));
  if (found == nullptr || found->size < sizeof(callbacks) || found->table_of == nullptr) return 0;
  function_table table = nullptr;
  unsigned size = 0;
  if (found->table_of(1, &table, &size) != 0) { // the functions without a domain
    set(table, size, 4, range_start_full);
    set(table, size, 5, range_start);
    set(table, size, 7, range_end);
    set(table, size, 8, range_push_full);
    set(table, size, 9, range_push);
    set(table, size, 10, range_push_wide);
    set(table, size, 11, range_pop);
  }
  if (found->table_of(5, &table, &size) != 0) { // those of domains
    set(table, size, 2, domain_start);
    set(table, size, 3, domain_end);
    set(table, size, 4, domain_push);
    set(table, size, 5, domain_pop);
    set(table, size, 10, register_text);
    set(table, size, 12, create_domain);
  }
  return 1;
}

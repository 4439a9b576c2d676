// OpenMP for a candidate under ThreadSanitizer, compiled together with it. libgomp is not built
// with the sanitizer, which sees none of its barriers and so takes parallel loops for races. What
// orders threads is told to it here, and nothing else is: an order that is made by chance would
// hide races. For the same reason the parts of a loop go round the team, whatever its schedule: a
// thread that comes first and takes them all would race with nobody. A construct that is not
// defined here does not link, so that there is no report rather than a wrong one.

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

extern "C" {
void __tsan_acquire(void* at);
void __tsan_release(void* at);
}

#define UNSEEN __attribute__((no_sanitize("thread")))

namespace watched_openmp {

// More than most machines under test have cores: a race needs two threads, whatever the machine.
constexpr int usual_threads = 4;
constexpr int most_threads = 64;

// A `single` that a team meets: whether it has been handed out. Each thread meets them in the same
// order, and the first makes the next.
struct share {
  share* following;
  long taken;
  void* data;
};

struct team {
  int size;
  pthread_barrier_t barrier;
  share first;
};

struct loop {
  long start, step, count, chunk;
};

struct thread {
  team* in;
  int number;
  share* now;
  long turn; // of a loop's parts or of sections: the next that is its own
  loop range;
  share alone; // of a construct outside of each region
};

struct region {
  void (*function)(void*);
  void* data;
  team* of;
  int number;
  loop range;
};

static __thread thread self;
static int wanted = usual_threads;
static int unnamed = 0;
static int atomics = 0;

UNSEEN static void lock(int* x) {
  while (__atomic_exchange_n(x, 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
  __tsan_acquire(x);
}

UNSEEN static void unlock(int* x) {
  __tsan_release(x);
  __atomic_store_n(x, 0, __ATOMIC_RELEASE);
}

UNSEEN static void meet() {
  if (self.in != nullptr && self.in->size > 1) pthread_barrier_wait(&self.in->barrier);
}

UNSEEN static void next_share() {
  if (self.in == nullptr) {
    self.alone = share{};
    self.now = &self.alone;
    return;
  }
  share* next = __atomic_load_n(&self.now->following, __ATOMIC_ACQUIRE);
  if (next == nullptr) {
    auto* made = static_cast<share*>(calloc(1, sizeof(share)));
    if (made == nullptr) abort();
    if (__atomic_compare_exchange_n(&self.now->following, &next, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      next = made;
    else
      free(made);
  }
  self.now = next;
}

UNSEEN static long take() {
  return __atomic_fetch_add(&self.now->taken, 1, __ATOMIC_RELAXED);
}

UNSEEN static long next_turn() {
  long mine = self.turn;
  self.turn += self.in != nullptr ? self.in->size : 1;
  return mine;
}

// Iterations are counted without a sign: a loop over all of size_t has more than fit a long.
UNSEEN static loop loop_of(unsigned long start, unsigned long end, unsigned long step, long chunk,
                           bool up) {
  bool any = up ? (long)step > 0 : (long)step < 0;
  unsigned long way = up ? end - start : start - end;
  unsigned long stride = up ? step : 0 - step;
  return {(long)start, (long)step, any ? (long)((way + stride - 1) / stride) : 0,
          chunk > 0 ? chunk : 1};
}

UNSEEN static loop signed_loop(long start, long end, long step, long chunk) {
  if (step > 0 ? start >= end : start <= end) return {start, step, 0, 1};
  return loop_of((unsigned long)start, (unsigned long)end, (unsigned long)step, chunk, step > 0);
}

UNSEEN static loop unsigned_loop(bool up, unsigned long start, unsigned long end,
                                 unsigned long step, unsigned long chunk) {
  if (up ? start >= end : start <= end) return {(long)start, (long)step, 0, 1};
  return loop_of(start, end, step, (long)chunk, up);
}

UNSEEN static bool next_part(unsigned long* begin, unsigned long* end) {
  const loop& x = self.range;
  unsigned long count = (unsigned long)x.count;
  unsigned long from = (unsigned long)next_turn() * (unsigned long)x.chunk;
  if (from >= count) return false;
  unsigned long rest = count - from;
  unsigned long to = rest < (unsigned long)x.chunk ? count : from + (unsigned long)x.chunk;
  *begin = (unsigned long)x.start + from * (unsigned long)x.step;
  *end = (unsigned long)x.start + to * (unsigned long)x.step;
  return true;
}

UNSEEN static bool begin_loop(loop range, unsigned long* begin, unsigned long* end) {
  self.turn = self.number;
  self.range = range;
  return next_part(begin, end);
}

UNSEEN static void enter(const region& x) {
  thread before = self;
  self.in = x.of;
  self.number = x.number;
  self.now = &x.of->first;
  self.turn = x.number;
  self.range = x.range;
  x.function(x.data);
  self = before;
}

UNSEEN static void* begin_thread(void* x) {
  enter(*static_cast<region*>(x));
  return nullptr;
}

// Threads of its own for each region: starting and joining them orders what the region does with
// what comes before and behind it. A region within a region has one, as libgomp has it.
UNSEEN static void run_region(void (*function)(void*), void* data, unsigned asked, loop range) {
  int size = asked > 0 ? (int)asked : __atomic_load_n(&wanted, __ATOMIC_RELAXED);
  if (size > most_threads) size = most_threads;
  if (self.in != nullptr || size < 1) size = 1;
  team all{};
  all.size = size;
  if (size > 1) pthread_barrier_init(&all.barrier, nullptr, (unsigned)size);
  pthread_t others[most_threads];
  region parts[most_threads];
  for (int i = 0; i < size; ++i) parts[i] = {function, data, &all, i, range};
  for (int i = 1; i < size; ++i)
    if (pthread_create(&others[i], nullptr, begin_thread, &parts[i]) != 0) {
      fputs("kernelmill: failed to start a thread\n", stderr);
      abort();
    }
  enter(parts[0]);
  for (int i = 1; i < size; ++i) pthread_join(others[i], nullptr);
  if (size > 1) pthread_barrier_destroy(&all.barrier);
  for (share* x = all.first.following; x != nullptr;) {
    share* next = x->following;
    free(x);
    x = next;
  }
}

UNSEEN static unsigned next_section() {
  long i = next_turn();
  return i < self.range.count ? (unsigned)i + 1 : 0;
}

} // namespace watched_openmp

using namespace watched_openmp;

// What g++ 12 calls. Hidden, so that a libgomp that the process has loaded cannot come first.
#pragma GCC visibility push(hidden)
extern "C" {

typedef unsigned long ulong_;
typedef unsigned long long ull;

UNSEEN void GOMP_parallel(void (*f)(void*), void* data, unsigned threads, unsigned) {
  run_region(f, data, threads, {});
}
UNSEEN void GOMP_barrier() {
  meet();
}

#define LOOP(kind)                                                                                 \
  UNSEEN bool GOMP_loop_##kind##_start(long a, long b, long step, long chunk, long* x, long* y) {  \
    return begin_loop(signed_loop(a, b, step, chunk), (ulong_*)x, (ulong_*)y);                     \
  }                                                                                                \
  UNSEEN bool GOMP_loop_##kind##_next(long* x, long* y) {                                          \
    return next_part((ulong_*)x, (ulong_*)y);                                                      \
  }                                                                                                \
  UNSEEN bool GOMP_loop_ull_##kind##_start(bool up, ull a, ull b, ull step, ull chunk, ull* x,     \
                                           ull* y) {                                               \
    return begin_loop(unsigned_loop(up, a, b, step, chunk), (ulong_*)x, (ulong_*)y);               \
  }                                                                                                \
  UNSEEN bool GOMP_loop_ull_##kind##_next(ull* x, ull* y) {                                        \
    return next_part((ulong_*)x, (ulong_*)y);                                                      \
  }                                                                                                \
  UNSEEN void GOMP_parallel_loop_##kind(void (*f)(void*), void* data, unsigned threads, long a,    \
                                        long b, long step, long chunk, unsigned) {                 \
    run_region(f, data, threads, signed_loop(a, b, step, chunk));                                  \
  }
LOOP(dynamic)
LOOP(guided)
LOOP(nonmonotonic_dynamic)
LOOP(nonmonotonic_guided)
#undef LOOP

#define RUNTIME_LOOP(kind)                                                                         \
  UNSEEN bool GOMP_loop_##kind##_start(long a, long b, long step, long* x, long* y) {              \
    return begin_loop(signed_loop(a, b, step, 1), (ulong_*)x, (ulong_*)y);                         \
  }                                                                                                \
  UNSEEN bool GOMP_loop_##kind##_next(long* x, long* y) {                                          \
    return next_part((ulong_*)x, (ulong_*)y);                                                      \
  }                                                                                                \
  UNSEEN void GOMP_parallel_loop_##kind(void (*f)(void*), void* data, unsigned threads, long a,    \
                                        long b, long step, unsigned) {                             \
    run_region(f, data, threads, signed_loop(a, b, step, 1));                                      \
  }
RUNTIME_LOOP(runtime)
RUNTIME_LOOP(nonmonotonic_runtime)
RUNTIME_LOOP(maybe_nonmonotonic_runtime)
#undef RUNTIME_LOOP

UNSEEN void GOMP_loop_end() {
  meet();
}
UNSEEN void GOMP_loop_end_nowait() {}

UNSEEN unsigned GOMP_sections_start(unsigned count) {
  self.turn = self.number;
  self.range.count = count;
  return next_section();
}
UNSEEN unsigned GOMP_sections_next() {
  return next_section();
}
UNSEEN void GOMP_sections_end() {
  meet();
}
UNSEEN void GOMP_sections_end_nowait() {}
UNSEEN void GOMP_parallel_sections(void (*f)(void*), void* data, unsigned threads, unsigned count,
                                   unsigned) {
  run_region(f, data, threads, {0, 1, count, 1});
}

UNSEEN bool GOMP_single_start() {
  next_share();
  return take() == 0;
}
UNSEEN void* GOMP_single_copy_start() {
  next_share();
  if (take() == 0) return nullptr;
  share* mine = self.now;
  meet();
  return mine->data;
}
UNSEEN void GOMP_single_copy_end(void* data) {
  self.now->data = data;
  meet();
}

UNSEEN void GOMP_critical_start() {
  lock(&unnamed);
}
UNSEEN void GOMP_critical_end() {
  unlock(&unnamed);
}
UNSEEN void GOMP_critical_name_start(void** name) {
  lock((int*)name);
}
UNSEEN void GOMP_critical_name_end(void** name) {
  unlock((int*)name);
}
UNSEEN void GOMP_atomic_start() {
  lock(&atomics);
}
UNSEEN void GOMP_atomic_end() {
  unlock(&atomics);
}

UNSEEN void omp_init_lock(int* x) {
  __atomic_store_n(x, 0, __ATOMIC_RELAXED);
}
UNSEEN void omp_destroy_lock(int*) {}
UNSEEN void omp_set_lock(int* x) {
  lock(x);
}
UNSEEN void omp_unset_lock(int* x) {
  unlock(x);
}
UNSEEN int omp_test_lock(int* x) {
  if (__atomic_exchange_n(x, 1, __ATOMIC_ACQUIRE) != 0) return 0;
  __tsan_acquire(x);
  return 1;
}

UNSEEN int omp_get_thread_num() {
  return self.number;
}
UNSEEN int omp_get_num_threads() {
  return self.in != nullptr ? self.in->size : 1;
}
UNSEEN int omp_get_max_threads() {
  return __atomic_load_n(&wanted, __ATOMIC_RELAXED);
}
UNSEEN int omp_get_num_procs() {
  return usual_threads;
}
UNSEEN int omp_get_thread_limit() {
  return most_threads;
}
UNSEEN int omp_in_parallel() {
  return self.in != nullptr && self.in->size > 1;
}
UNSEEN int omp_get_level() {
  return self.in != nullptr;
}
UNSEEN int omp_get_dynamic() {
  return 0;
}
UNSEEN void omp_set_dynamic(int) {}
UNSEEN void omp_set_nested(int) {}
UNSEEN void omp_set_max_active_levels(int) {}
UNSEEN void omp_set_schedule(int, int) {}
UNSEEN void omp_set_num_threads(int n) {
  if (n > 0) __atomic_store_n(&wanted, n < most_threads ? n : most_threads, __ATOMIC_RELAXED);
}
UNSEEN double omp_get_wtime() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
UNSEEN double omp_get_wtick() {
  return 1e-9;
}

} // extern "C"
#pragma GCC visibility pop

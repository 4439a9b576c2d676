// The two ends of the page: the referee's call against the clock, and the process's wait for it.
// Python calls these through ctypes, which lets go of the interpreter's lock meanwhile.

#include "gpu/torch/native/page.hpp"

#include <cerrno>

#include <poll.h>
#include <sys/mman.h>
#include <time.h>

#include "gpu/candidate/protocol.hpp"

namespace {

using kernelmill::futex_wait;
using kernelmill::futex_wake;
using kernelmill::spin_until_changed;
using kernelmill::torch::page;
using kernelmill::torch::page_size;

constexpr int64_t look_after_us = 50'000; // how often a waiting referee asks whether anybody lives

double now_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

bool has_ended(int pidfd) {
  pollfd x{pidfd, POLLIN, 0};
  return ::poll(&x, 1, 0) > 0;
}

// Seconds since `started` when a command is done; -1 and -2 as km_page_call() says.
double await(page& x, uint32_t number, int pidfd, double started, double deadline, uint32_t spin) {
  for (uint32_t seen = x.done.load(std::memory_order_acquire); seen != number;) {
    if (!spin_until_changed(&x.done, seen, spin)) futex_wait(&x.done, seen, look_after_us);
    seen = x.done.load(std::memory_order_acquire); // a word that nobody gave is looked past
    double passed = now_seconds() - started;
    if (seen == number) return passed;
    if (has_ended(pidfd)) return -2;
    if (passed > deadline) return -1;
  }
  return now_seconds() - started;
}

} // namespace

extern "C" {

/// Maps the page of a descriptor; null when it cannot.
void* km_page_map(int fd) {
  void* at = ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void km_page_unmap(void* at) {
  ::munmap(at, page_size);
}

/// Gives a command and waits until it is done. Returns its seconds by the clock out here; -1 when
/// the deadline (seconds from now) passed, -2 when the process ended.
double km_page_call(void* at, int pidfd, uint32_t command, uint32_t first, uint32_t count,
                    uint32_t place, uint64_t seed, double deadline, uint32_t spin) {
  auto& x = *static_cast<page*>(at);
  x.command = command;
  x.first = first;
  x.count = count;
  x.spin = spin;
  x.place = place;
  x.seed = seed;
  uint32_t next = x.sequence.load(std::memory_order_relaxed) + 1;
  uint32_t seen = x.done.load(std::memory_order_acquire);
  double started = now_seconds();
  x.sequence.store(next, std::memory_order_release);
  futex_wake(&x.sequence);
  // Where the word stood there before the command, somebody guessed it. What follows is judged by
  // bytes.
  return seen == next ? now_seconds() - started : await(x, next, pidfd, started, deadline, spin);
}

/// Waits until the command that was given last is done, and returns as km_page_call() does.
double km_page_await(void* at, int pidfd, double deadline, uint32_t spin) {
  auto& x = *static_cast<page*>(at);
  uint32_t next = x.sequence.load(std::memory_order_relaxed);
  return await(x, next, pidfd, now_seconds(), deadline, spin);
}

uint32_t km_page_status(const void* at) {
  return static_cast<const page*>(at)->status;
}

/// The process's side: waits for a command after `last` and returns its number.
uint32_t km_page_wait(void* at, uint32_t last) {
  auto& x = *static_cast<page*>(at);
  for (;;) {
    uint32_t now = x.sequence.load(std::memory_order_acquire);
    if (now != last) return now;
    if (!spin_until_changed(&x.sequence, last, x.spin)) futex_wait(&x.sequence, last, 0);
  }
}

uint32_t km_page_command(const void* at) {
  return static_cast<const page*>(at)->command;
}
uint32_t km_page_first(const void* at) {
  return static_cast<const page*>(at)->first;
}
uint32_t km_page_count(const void* at) {
  return static_cast<const page*>(at)->count;
}

uint32_t km_page_place(const void* at) {
  return static_cast<const page*>(at)->place;
}
uint64_t km_page_seed(const void* at) {
  return static_cast<const page*>(at)->seed;
}

void km_page_done(void* at, uint32_t number, uint32_t status) {
  auto& x = *static_cast<page*>(at);
  x.status = status;
  x.done.store(number, std::memory_order_release);
  futex_wake(&x.done);
}

} // extern "C"

// Both ends of a batch of calls: the process queues it and tells how long it took, the referee
// releases it, sees when it is over, and samples what it gave.

#include <ctime>

#include <poll.h>

#include "gpu/candidate/gpu_batch.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/torch/native/page.hpp"

namespace {

using namespace kernelmill;

constexpr unsigned block_size = 256;
constexpr unsigned looks_between = 20'000; // between two looks at whether the process lives

const cuda::driver* driver() {
  static const cuda::driver* found = [] {
    auto opened = cuda::open_driver();
    return opened ? *opened : nullptr;
  }();
  return found;
}

gpu_batch& batch() {
  static gpu_batch found{*driver()};
  return found;
}

torch::page& page_of(void* at) {
  return *static_cast<torch::page*>(at);
}

double now_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

cuda::function kernel = nullptr;

} // namespace

extern "C" {

// -- the process ----------------------------------------------------------------------------------

/// What the default stream is given from now on is a batch, which waits until the referee's GPU has
/// opened `number`; 0: it does not wait. Returns the driver's error.
int km_batch_begin(void* at, uint32_t number) {
  return driver() == nullptr ? -1 : batch().begin(at, &page_of(at).batch, nullptr, number);
}

/// The batch is over; once its work is, the GPU writes `number`. Returns the driver's error.
int km_batch_end(uint32_t number) {
  return batch().end(nullptr, number);
}

/// Tells the seconds of a batch that is over, by the events around it.
void km_batch_note() {
  batch().note_seconds();
}

/// Tells the seconds of a batch of calls on a CPU.
void km_batch_tell(void* at, double seconds) {
  page_of(at).batch.inside = seconds;
}

// -- the referee ----------------------------------------------------------------------------------

double km_batch_inside(void* at) {
  return page_of(at).batch.inside;
}

/// Where in the page the word lies that opens a batch.
size_t km_batch_open_word() {
  return offsetof(torch::page, batch) + offsetof(batch_words, open);
}

/// Opens a batch from the CPU, for a process that waits for it.
void km_batch_force(void* at, uint32_t number) {
  page_of(at).batch.open.store(number, std::memory_order_release);
}

/// Writes `number` to a word once the GPU has done what the default stream was given until now.
int km_gpu_write_word(uint64_t word, uint32_t number) {
  return driver() == nullptr ? -1 : driver()->write_value(nullptr, word, number, 0);
}

/// The moment (seconds of CLOCK_MONOTONIC) at which a batch is seen to be open, or, with
/// `completed`, to be over. -1 after `seconds`, -2 when the process has ended.
double km_batch_await(void* at, uint32_t number, int completed, int pidfd, double seconds) {
  auto& words = page_of(at).batch;
  auto& word = completed != 0 ? words.completed : words.open;
  double until = now_seconds() + seconds;
  for (;;) {
    for (unsigned i = 0; i < looks_between; ++i) {
      if (word.load(std::memory_order_acquire) == number) return now_seconds();
      __builtin_ia32_pause();
    }
    pollfd x{pidfd, POLLIN, 0};
    if (::poll(&x, 1, 0) > 0) return -2;
    if (now_seconds() > until) return -1;
  }
}

/// Loads the referee's kernels (a cubin). Returns the driver's error.
int km_gpu_kernels(const void* image) {
  cuda::module loaded = nullptr;
  int code = driver() == nullptr ? -1 : driver()->module_load(&loaded, image);
  return code == 0 ? driver()->module_function(&kernel, loaded, "take_samples") : code;
}

/// Takes `count` bytes of each of some stretches of memory, at places that the seed tells, and
/// waits for that. `stretches`: of each its address and bytes, in the GPU's memory.
int km_gpu_sample(uint64_t stretches, unsigned number, uint32_t seed, uint64_t into,
                  unsigned count) {
  void* arguments[] = {&stretches, &seed, &into, &count};
  int code = kernel == nullptr ? -1
                               : driver()->launch(kernel, 1, number, 1, block_size, 1, 1, 0,
                                                  nullptr, arguments, nullptr);
  return code == 0 ? driver()->synchronize() : code;
}

} // extern "C"

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
constexpr unsigned compare_blocks = 128;   // for each output
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

// The moment at which a word is seen to be `number`; -1 after `seconds`, -2 when the process ended.
double await(const std::atomic<uint32_t>& word, uint32_t number, int pidfd, double seconds) {
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

cuda::module kernels = nullptr; // the referee's

cuda::function kernel_of(const char* name) {
  cuda::function result = nullptr;
  bool ok = kernels != nullptr && driver()->module_function(&result, kernels, name) == 0;
  return ok ? result : nullptr;
}

// A word of the referee's own that its GPU writes: what the process shares could be written by it.
struct own_word {
  std::atomic<uint32_t>* here = nullptr;
  cuda::device_pointer there = 0;
  uint32_t number = 0;
};

own_word& released_word() {
  static own_word word = [] {
    own_word x;
    void* page = nullptr;
    if (driver()->host_allocate(&page, page_bytes, cuda::host_mapped) == 0 &&
        driver()->host_pointer(&x.there, page, 0) == 0) {
      x.here = static_cast<std::atomic<uint32_t>*>(page);
      x.here->store(0);
    }
    return x;
  }();
  return word;
}

// Has the GPU open a batch, and tell us, once it has done what the default stream was given. The
// moment, or what await() says; the driver's error in `code`.
double release(const cuda::driver& gpu, uint64_t word, uint32_t number, int pidfd, double seconds,
               int& code) {
  auto& own = released_word();
  code = own.here == nullptr ? -3 : gpu.write_value(nullptr, word, number, 0);
  if (code == 0) code = gpu.write_value(nullptr, own.there, ++own.number, 0);
  return code == 0 ? await(*own.here, own.number, pidfd, seconds) : 0;
}

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

/// The same of a batch on a CPU.
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

struct km_watch {
  // Asked:
  uint64_t word;      ///< that opens the batch, for the GPU
  uint32_t number;    ///< of the batch
  uint32_t seed;      ///< of the places that are sampled
  uint64_t stretches; ///< of outputs, in the GPU's memory: of each its address and bytes
  uint64_t samples;   ///< where they go
  uint32_t outputs;   ///< number of stretches
  uint32_t bytes;     ///< that are sampled of each
  double seconds;     ///< after which it is given up
  // Told, in seconds of CLOCK_MONOTONIC:
  double released; ///< the referee's GPU has opened it
  double over;     ///< the process's GPU says so
  double sampled;  ///< samples of outputs are there
};

/// Samples outputs, and waits for that. Returns the driver's error.
int km_batch_sample(km_watch* x) {
  void* arguments[] = {&x->stretches, &x->seed, &x->samples, &x->bytes};
  static cuda::function kernel = kernel_of("take_samples");
  int code = kernel == nullptr ? -1
                               : driver()->launch(kernel, 1, x->outputs, 1, block_size, 1, 1, 0,
                                                  nullptr, arguments, nullptr);
  if (code == 0) code = driver()->synchronize();
  x->sampled = now_seconds();
  return code;
}

/// Has the GPU open a batch once it has done what the default stream was given until now, waits
/// until it is over, and samples its outputs. Returns 0, the driver's error, -1 when the time is
/// over, -2 when the process has ended.
int km_batch_watch(void* at, int pidfd, km_watch* x) {
  auto& words = page_of(at).batch;
  const auto& cuda = *driver();
  int code = 0;
  x->released = release(cuda, x->word, x->number, pidfd, x->seconds, code);
  if (code != 0) return code;
  if (x->released < 0) return static_cast<int>(x->released);
  x->over = await(words.completed, x->number, pidfd, x->seconds);
  if (x->over < 0) return static_cast<int>(x->over);
  return km_batch_sample(x);
}

/// Has the GPU open a batch whose calls are made when that is seen; km_batch_sample() is to follow.
int km_batch_release(int pidfd, km_watch* x) {
  int code = 0;
  x->released = release(*driver(), x->word, x->number, pidfd, x->seconds, code);
  if (code != 0) return code;
  return x->released < 0 ? static_cast<int>(x->released) : 0;
}

/// Loads the referee's kernels (a cubin). Returns the driver's error.
int km_gpu_kernels(const void* image) {
  return driver() == nullptr ? -1 : driver()->module_load(&kernels, image);
}

/// Compares outputs with what is wanted, by the kernel of a type ("near_f32", ...); `table` and
/// `sums` are the kernel's, in the GPU's memory. Does not wait. Returns the driver's error, or -1
/// without such a kernel.
int km_gpu_compare(const char* type, uint64_t table, uint64_t sums, unsigned outputs) {
  void* arguments[] = {&table, &sums};
  cuda::function kernel = kernel_of(type);
  return kernel == nullptr ? -1
                           : driver()->launch(kernel, compare_blocks, outputs, 1, block_size, 1, 1,
                                              0, nullptr, arguments, nullptr);
}

} // extern "C"

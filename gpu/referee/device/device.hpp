#pragma once

// The referee's own context on its GPU: memory, the kernels of kernels.cu, and what the card can do
// at most. Nothing of a candidate ever runs in it, except as bytes in shared buffers.
//
// Every failure in here is the machine's: it throws device_failure, the referee answers with an
// infrastructure fault and ends, and a fresh one looks at the card again.

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/referee/device/rousing.hpp"
#include "gpu/task/device_fill.hpp"
#include "gpu/task/distribution.hpp"

namespace kernelmill {

struct device_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The twin of `audit` in kernels.cu.
struct device_audit {
  uint64_t bad = 0;
  uint64_t first_bad = ~uint64_t{0};
  uint64_t bad_argument = 0;
  uint64_t bad_set = 0;
  uint64_t changed_inputs = 0;
  uint64_t damaged_guards = 0;
  uint64_t unasked = 0;
  uint64_t late = 0;
  double share = 0; ///< largest error, in units of its bound
};

/// How the elements of a tensor are made. The twin of `content_how` in kernels.cu.
struct content_how {
  uint32_t kind = 0; ///< of device_fill
  float scale = 1;
  uint32_t row = 1; ///< elements of one
  int32_t low = 0;  ///< of integers: [low, low + width)
  uint64_t width = 1;
};

/// As many sets of one tensor as a kernel works on at once.
struct tensor_sets {
  cuda::device_pointer first = 0;
  uint64_t count = 0;  ///< elements of a set
  uint64_t stride = 0; ///< elements from one set to the next
  unsigned number = 0; ///< of the first set: it has a part in the contents
  unsigned sets = 1;
};

/// Memory of the referee alone; freed when it goes.
class device_memory {
public:
  device_memory() = default;
  device_memory(const cuda::driver& cuda, size_t bytes);
  device_memory(device_memory&& x) noexcept { swap(x); }
  device_memory& operator=(device_memory&& x) noexcept {
    swap(x);
    return *this;
  }
  ~device_memory();

  cuda::device_pointer address() const noexcept { return address_; }
  size_t bytes() const noexcept { return bytes_; }

private:
  void swap(device_memory& x) noexcept {
    std::swap(cuda_, x.cuda_);
    std::swap(address_, x.address_);
    std::swap(bytes_, x.bytes_);
  }
  const cuda::driver* cuda_ = nullptr;
  cuda::device_pointer address_ = 0;
  size_t bytes_ = 0;
};

/// Thread safety: none.
class device {
public:
  /// Opens the only GPU that CUDA_VISIBLE_DEVICES shows, or ROCR_VISIBLE_DEVICES of an AMD GPU.
  /// `architecture` is that of an AMD GPU ("gfx90a"); an NVIDIA GPU tells it.
  static expected<std::unique_ptr<device>> open(cuda::gpu_api api = cuda::gpu_api::cuda,
                                                std::string architecture = {});

  /// Adds how sources reach the GPU to the description: "hip on nvidia".
  void describe_as(const std::string& how) { description_ += ", " + how; }

  const cuda::driver& cuda() const noexcept { return *cuda_; }
  const std::string& description() const noexcept { return description_; }

  /// The referee's kernels for this GPU, a cubin.
  const std::string& kernels() const noexcept { return kernels_; }
  const std::string& uuid() const noexcept { return uuid_; } ///< "GPU-..."; empty: not told
  const std::string& architecture() const noexcept { return architecture_; } ///< "sm_90"

  /// Throws device_failure unless `code` is 0.
  void check(const char* what, cuda::result code) const;

  /// Waits for all work of this context.
  void synchronize() const { check("wait for the GPU", cuda_->synchronize()); }

  /// Launches a kernel of kernels.cu over `n` elements, on as many rows of blocks as there are
  /// sets. Arguments must have the exact types.
  template <class... Ts>
  void launch(const char* kernel, unsigned sets, uint64_t n, Ts... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)...};
    launch_kernel(kernel, sets, n, pointers);
  }

  void fill(const tensor_sets& x, dtype type, const content_how& how, const content_key& row);

  /// Counts elements that differ from what fill() would write.
  void verify(const tensor_sets& x, dtype type, const content_how& how, const content_key& row);

  void fill_words(const tensor_sets& x, uint32_t pattern);

  /// Takes back what was pinned in the second-level cache.
  void unpin_cache() const;

  /// Queues a read of twice the second-level cache, and a write of some bytes of it, which are left
  /// there to be written back. REQUIRES: no more than the cache has.
  void push_out_cache(size_t left_to_write = 0);

  /// Queues the release of a batch: the word at `gate` becomes `number`.
  void open_gate(cuda::device_pointer gate, uint32_t number);
  /// Whether the latest of them is on its way.
  bool has_opened() const noexcept { return *told_ == release_; }

  /// Returns when the clock is up; see rousing.hpp.
  void rouse();

  /// Starts a new audit; the kernels that take one add to it.
  void begin_audit();
  device_audit end_audit(); ///< waits
  cuda::device_pointer audit_address() const noexcept { return audit_.address(); }

  size_t cache_bytes() const noexcept { return cache_bytes_; }
  int multiprocessors() const noexcept { return multiprocessors_; }
  double memory_bytes_per_second() const noexcept { return memory_rate_; } ///< by its data sheet
  double flops_per_second() const noexcept { return flops_; } ///< fp32, without matrix units
  /// Clocks, heat, power and throttling now, by NVML; nothing where there is no NVML.
  std::optional<cuda::gpu_state> state() const;
  bool crowded() const; ///< less than half of its memory is free

  struct memory_state {
    size_t free = 0; ///< bytes
    size_t total = 0;
  };
  memory_state memory() const;

private:
  device() = default;
  expected<void> start();
  expected<void> compile_kernels();
  void learn_limits();
  void find_monitor();
  void launch_kernel(const char* kernel, unsigned sets, uint64_t n, void** arguments);

  const cuda::driver* cuda_ = nullptr;
  cuda::module module_ = nullptr;
  std::string kernels_;
  std::string description_;
  std::string uuid_;
  std::string architecture_;
  std::optional<cuda::gpu_monitor> monitor_;
  unsigned monitored_ = 0;
  std::optional<cuda::gpu> amd_;      // where it is one of AMD's
  volatile uint32_t* told_ = nullptr; // in host memory that the GPU writes
  cuda::device_pointer told_there_ = 0;
  uint32_t release_ = 0;
  device_memory audit_;
  device_memory flushed_;
  size_t cache_bytes_ = 0;
  int multiprocessors_ = 1;
  double memory_rate_ = 0;
  double flops_ = 0;
  rousing rousing_{0};
};

} // namespace kernelmill

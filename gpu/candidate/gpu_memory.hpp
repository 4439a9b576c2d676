#pragma once

// A candidate process's end of a GPU: a context, and the referee's memory mapped into it. Nothing
// here is trusted once a candidate is loaded.

#include <cstddef>

namespace kernelmill {

namespace cuda {
struct driver;
enum class gpu_api : unsigned char;
} // namespace cuda

/// Thread safety: none.
class gpu_memory {
public:
  /// Opens the driver and makes the context of the only GPU that this process sees.
  bool open(cuda::gpu_api api = {});

  /// Maps what a descriptor names, between two stretches of addresses that are never mapped, and
  /// closes the descriptor. Null when it fails.
  void* map(int descriptor, size_t size, bool writable);

  /// Waits for all work of the context. Returns the driver's error; 0 is none.
  int synchronize();

  /// REQUIRES: open() was true.
  const cuda::driver& cuda() const noexcept { return *cuda_; }

  /// What failed last, for people.
  const char* problem() const noexcept { return problem_; }

private:
  bool check(const char* what, int code);

  const cuda::driver* cuda_ = nullptr;
  char problem_[200] = "use the GPU";
};

} // namespace kernelmill

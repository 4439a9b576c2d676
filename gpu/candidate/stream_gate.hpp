#pragma once

// A gate on the stream that a library's kernels are launched on by default: what is launched behind
// it waits until the referee has put the contents there. The word that the GPU looks at lies in
// this process; a thread of ours opens it when the referee says so, because the process's own may
// be waiting, in the library, for work that is behind the gate.

#include <atomic>
#include <cstdint>

#include "gpu/cuda/driver.hpp"

namespace kernelmill {

/// Thread safety: close() and open() from one thread.
class stream_gate {
public:
  /// `opened` is the number of the latest gate that the referee has opened.
  stream_gate(const cuda::driver& cuda, std::atomic<uint32_t>* opened)
      : cuda_(cuda), opened_(opened) {}

  /// Closes gate `number`, one more than the one before. Nothing waits where that fails.
  void close(uint32_t number);

  void open(uint32_t number) noexcept;

private:
  bool make();
  void follow() noexcept;
  static void* run(void* self);

  const cuda::driver& cuda_;
  std::atomic<uint32_t>* opened_;
  std::atomic<uint32_t>* word_ = nullptr; // in host memory that the GPU reads
};

} // namespace kernelmill

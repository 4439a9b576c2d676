#pragma once

// A batch of launches in a candidate process: it waits on the GPU until the referee's GPU has put
// the inputs there, and tells by the GPU when its work is over. The host has no part in either.
// Nothing here is trusted once a candidate is loaded.

#include "gpu/candidate/protocol.hpp"
#include "gpu/cuda/driver.hpp"

namespace kernelmill {

/// Functions return the driver's error, 0 for none. Thread safety: none.
class gpu_batch {
public:
  explicit gpu_batch(const cuda::driver& cuda) : cuda_(cuda) {}

  /// From now on work of `stream` waits until `words->open` is `number`, unless that is 0. `page`
  /// is the shared page of `page_bytes` in which the words lie.
  cuda::result begin(void* page, batch_words* words, cuda::stream stream, uint32_t number);

  cuda::result end(cuda::stream stream, uint32_t number);

  /// Notes the seconds between begin() and end(), once the work is over.
  void note_seconds();

private:
  cuda::result make(void* page, batch_words* words);

  const cuda::driver& cuda_;
  batch_words* words_ = nullptr;
  cuda::device_pointer there_ = 0; // of the words, for the GPU
  cuda::event first_ = nullptr;
  cuda::event last_ = nullptr;
  bool ended_ = false;
};

} // namespace kernelmill

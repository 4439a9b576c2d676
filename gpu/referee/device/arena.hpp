#pragma once

// The buffers of one task on a GPU: for every tensor one stretch of the GPU's memory that processes
// in the sandbox can map, divided into as many sets as calls are made in a row. So each call of a
// timed row finds its inputs in memory and not in a cache, and has outputs of its own to be
// checked.

#include <vector>

#include "gpu/referee/device/device.hpp"
#include "gpu/referee/slot.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

/// Thread safety: none.
class device_arena {
public:
  /// Room for one set of every case, and at the timed shape for as many as fill a row, with one
  /// more for the call before it. Throws device_failure.
  device_arena(device& gpu, const task& x);
  device_arena(const device_arena&) = delete;
  device_arena& operator=(const device_arena&) = delete;
  ~device_arena();

  /// What candidates get.
  std::vector<shared_memory> parameters() const;

  /// Sets the shape and renews all guards.
  void select(const task_case& which, unsigned sets);
  /// The most that a row at the timed shape may have, without the one before it.
  unsigned timed_sets() const noexcept { return timed_sets_; }
  size_t bytes() const noexcept; ///< of the GPU's memory
  unsigned sets() const noexcept { return sets_; }

  size_t offset(size_t argument, unsigned set) const; ///< behind the descriptor
  cuda::device_pointer address(size_t argument, unsigned set) const;
  size_t count(size_t argument) const { return tensors_[argument].bytes / 4; }

  /// Bytes of a cache that calls of so many sets, one after the other, leave there to be written
  /// back: the share of outputs in what a call moves, and no more than they have.
  size_t left_to_write(size_t cache, unsigned sets) const;

  /// Sets of one tensor, from one on.
  tensor_sets sets_of(size_t argument, unsigned first, unsigned count) const;

  void check_guards(); ///< adds to the audit
  void poison_outputs(unsigned first, unsigned count);

  device& gpu() const noexcept { return gpu_; }
  const task& spec() const noexcept { return task_; }

private:
  struct tensor {
    cuda::memory_handle handle = 0;
    cuda::device_pointer base = 0; // 0: a scalar
    descriptor exported;
    size_t capacity = 0;
    size_t bytes = 0;  // of one set at this shape
    size_t stride = 0; // from one set to the next, guards included
    bool output = false;
  };
  void allocate(tensor& x, size_t bytes);
  template <class Visit>
  void for_each_guard(Visit visit);

  device& gpu_;
  const task& task_;
  std::vector<tensor> tensors_;
  unsigned timed_sets_ = 1;
  unsigned sets_ = 1;
};

} // namespace kernelmill

#pragma once

// The page that the torch referee shares with a candidate or baseline process. Commands that are
// clocked go over it; everything else goes over a socket. Nothing that the process writes here is
// believed: `done` says when to look, and `status` picks words for a verdict that is made anyway.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/candidate/protocol.hpp"

namespace kernelmill::torch {

inline constexpr size_t page_size = 4096;

struct page {
  alignas(64) std::atomic<uint32_t> sequence; ///< of the latest command; the referee writes it
  uint32_t command;                           ///< as kernelmill_torch/native.py numbers them
  uint32_t first;                             ///< set of buffers that the first call uses; of a
                                              ///< batch: whether calls are kept apart
  uint32_t count;                             ///< calls
  uint32_t spin;                              ///< look this often for a command before sleeping
  uint32_t place;                             ///< which layout of the sets the calls use
  uint64_t seed;                              ///< of torch's generators for a row; 0: they go on
  alignas(64) std::atomic<uint32_t> done;     ///< sequence of the command that has ended
  uint32_t status;                            ///< 0: well; the process has words on its socket
  batch_words batch;                          ///< of the latest
};
static_assert(sizeof(page) <= page_size);

} // namespace kernelmill::torch

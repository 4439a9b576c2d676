#pragma once

#include <cstdint>

namespace kernelmill {

inline constexpr uint16_t protocol_version = 4;

/// Travels in the clear beside every payload, so that routing and logging decode nothing.
struct envelope {
  uint16_t protocol = protocol_version; ///< a node refuses another one
  uint64_t epoch = 0; ///< of the head that sends a job; a node refuses those of a head that it left
  uint64_t run = 0;   ///< run_number() of the run's name
  uint64_t episode = 0; ///< ordinal of the episode within the run's plan
  uint64_t trace = 0;   ///< one per turn, in every log line about it
  int32_t priority = 0; ///< of the run; the highest goes first
  uint32_t layers = 0;  ///< layer_bits() of the sandbox's layers that the run requires
};

} // namespace kernelmill

#pragma once

#include <cstdint>

namespace kernelmill {

inline constexpr uint16_t protocol_version = 2;

/// Travels in the clear beside every payload, so that routing and logging decode nothing.
struct envelope {
  uint16_t protocol = protocol_version;
  uint32_t epoch = 0;   ///< of the sender's node; an answer of an older epoch is stale
  uint64_t run = 0;     ///< hash of the run's name
  uint64_t episode = 0; ///< ordinal of the episode within the run's plan
  uint64_t trace = 0;   ///< one per turn, in every log line about it
  int32_t priority = 0; ///< of the run; the highest goes first
};

} // namespace kernelmill

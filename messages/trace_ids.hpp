#pragma once

// Ids of OpenTelemetry's traces. An episode is one trace, and the request for a completion is a
// span of it: a server that reads `traceparent` puts its own spans below that one. They are hashes
// of names, so a reader of the records can compute them too.

#include <cstdint>
#include <string_view>

#include "messages/base/hash.hpp"

namespace kernelmill {

struct trace_id {
  uint64_t high = 0;
  uint64_t low = 0;
};

/// `run` is run_number() of the run's name, `episode` the ordinal within its plan.
constexpr trace_id trace_of_episode(uint64_t run, uint64_t episode) noexcept {
  return {mix(run, episode), mix(run, episode, 1)};
}

/// A span of that trace by a name that no other one has. Never 0: that is void by the standard.
constexpr uint64_t span_of(trace_id trace, std::string_view name) noexcept {
  return mix(hash_of(name), trace.low) | 1;
}

} // namespace kernelmill

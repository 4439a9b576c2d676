#pragma once

// INTERNAL to the library that is loaded before a program's own code: what its parts tell each
// other. Plain C at heart: it lives in processes that we do not build, next to code that we do not
// trust, and must bring nothing that such code could miss or find.

#include <cstddef>
#include <cstdint>

namespace kernelmill::watch {

/// Whether a name counts: it matches a glob of `include`, or there is none, and none of `exclude`.
bool counts(const char* name);

/// Writes one line to the referee: "SECRET PID WORDS".
void report(const char* words, ...) __attribute__((format(printf, 1, 2)));

/// Opens CUPTI and asks it for what the GPU does. False, and reports why, where it cannot.
bool open_activity(const char* library);

/// A range of NVTX begins or ends on this thread.
void push_range(const char* name);
void pop_range();

/// Tells the times of all that has ended; once.
void report_times(bool by_kernels);

inline uint64_t wall_time_of_ranges = 0; ///< ns; ranges that count, outermost ones alone
inline uint64_t ranges_seen = 0;         ///< of those

/// What CUPTI is told of the work that a thread launches from now on.
void mark_launches(uint64_t id);
void unmark_launches();

inline constexpr uint64_t counted_id = 1;

} // namespace kernelmill::watch

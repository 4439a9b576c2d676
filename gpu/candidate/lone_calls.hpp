#pragma once

// Device code, or a library of the contract `native`, that is called without a referee, so that a
// tool of the toolkit can look at its kernels: what the process is told, in a file beside that of
// device_program.hpp or beside the library. Each case has buffers of its own, exactly as large as
// its tensors, so that the tool knows every byte that may be read.

#include <cstddef>
#include <cstdint>

#include "gpu/candidate/device_program.hpp"

namespace kernelmill {

// Descriptors of the process. What is written to the report is the tool's.
inline constexpr int lone_program = 3;
inline constexpr int lone_calls = 4;
inline constexpr int lone_report = 5;

inline constexpr uint64_t lone_magic = 0x334e4f4c4d4b; // "KMLON3"
inline constexpr size_t lone_cases = 16;

struct lone_buffer {
  uint64_t bytes;    ///< 0: a scalar
  uint64_t contents; ///< where they begin in the file; 0: left as it was allocated
};

/// A buffer for each argument of the task, then one for each scratch buffer: to the plan all of
/// them are tensors.
struct lone_case {
  uint32_t calls;
  uint32_t launches; ///< 0 of a library
  program_launch plan[program_launches];
  lone_buffer buffers[max_arguments];
  int64_t values[max_arguments]; ///< of a library's scalars
};

struct lone_file {
  uint64_t magic;
  uint64_t cases;
  char function[72]; ///< of the library; empty: device code
  uint64_t marked;   ///< not 0: of a library, a profiler is told where each case's last call begins
                     ///< and ends
  lone_case list[lone_cases];
};

/// Makes all calls and returns the exit code of the process; what failed goes to stderr.
int make_lone_calls();

} // namespace kernelmill

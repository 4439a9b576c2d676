#pragma once

// What the referee and a process that runs device code share beside the control page, in the file
// that takes the place of a library: what one call launches, and the cubin. The
// process has no code of a candidate on its host side and serves one candidate after another.

#include <cstddef>
#include <cstdint>

#include "gpu/candidate/protocol.hpp"

namespace kernelmill {

inline constexpr size_t program_launches = 8;
inline constexpr size_t program_scratch = 8;
inline constexpr size_t program_file_bytes = size_t{32} << 20;

enum class program_argument_kind : uint32_t { tensor, scratch, value };

struct program_argument {
  program_argument_kind kind;
  uint32_t index;
  int64_t value; ///< read as int or as long long, as the kernel declares it
};

struct program_launch {
  char kernel[64];
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared; ///< bytes
  uint32_t arguments;
  program_argument list[max_arguments];
};

struct device_program {
  uint32_t launches;
  uint32_t scratch_buffers;
  uint64_t scratch_bytes[program_scratch];
  program_launch plan[program_launches];
};

inline constexpr size_t program_cubin_at =
    (sizeof(device_program) + page_bytes - 1) / page_bytes * page_bytes;

} // namespace kernelmill

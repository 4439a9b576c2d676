#pragma once

// What a candidate process may see and take.

#include <cstdint>

#include "gpu/referee/candidate_process.hpp"
#include "gpu/sandbox/sandbox.hpp"

namespace kernelmill {

inline constexpr uint64_t candidate_memory_limit = uint64_t{1} << 30; ///< tensors are the referee's
inline constexpr uint64_t candidate_gpu_memory_limit = uint64_t{8} << 30; ///< a context takes 1 GiB
inline constexpr uint64_t candidate_printed_limit = uint64_t{1} << 20;
inline constexpr int candidate_end_wait_ms = 2'000; ///< that the process takes to end

/// Returns the sandbox of a candidate that answers on `socket` and prints into `printed`.
sandbox_spec candidate_walls(const candidate_options& options, int socket, int printed);

} // namespace kernelmill

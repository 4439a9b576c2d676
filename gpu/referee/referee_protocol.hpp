#pragma once

// Kinds of the frames between a node and its referee, and the descriptor they cross.

#include <cstdint>

namespace kernelmill {

inline constexpr int referee_socket = 3;

enum referee_frame : uint32_t {
  evaluate_request_frame = 1,
  evaluate_result_frame = 2,
  check_request_frame = 3,
  check_result_frame = 4,
};

} // namespace kernelmill

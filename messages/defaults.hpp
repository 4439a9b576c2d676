#pragma once

// Values that a configuration takes when it says nothing, and that parts below launch/ take too
// when no configuration sets them. Times are in milliseconds.

#include <cstddef>
#include <cstdint>

namespace kernelmill::defaults {

inline constexpr uint32_t group_size = 4;
inline constexpr uint32_t max_turns = 4;
inline constexpr uint32_t max_live = 256;
inline constexpr double max_infrastructure = 0.2;

inline constexpr uint32_t policy_max_in_flight = 64;
inline constexpr uint32_t policy_timeout_ms = 300'000;
inline constexpr uint32_t policy_connect_timeout_ms = 5'000;
inline constexpr uint32_t policy_first_contact_ms = 30'000;
inline constexpr uint32_t policy_stall_ms = 120'000;
inline constexpr uint64_t policy_max_response_bytes = uint64_t{4} << 20;

inline constexpr uint32_t build_deadline_ms = 60'000;
inline constexpr uint32_t torch_build_deadline_ms = 300'000; // torch's headers alone take a minute
inline constexpr uint32_t evaluate_deadline_ms = 60'000;
inline constexpr uint32_t torch_evaluate_deadline_ms = 180'000;
inline constexpr uint32_t determinism_runs = 2; // on the same contents
inline constexpr uint32_t turn_deadline_ms = 900'000;
inline constexpr uint32_t episode_deadline_ms = 3'600'000;

inline constexpr double gamma = 0.4;
inline constexpr uint32_t feedback_bytes = 6000;

inline constexpr uint32_t tool_steps = 24;
inline constexpr double tool_gpu_seconds = 120;
inline constexpr uint32_t tool_hidden_evaluations = 16;
inline constexpr uint32_t tool_observation_bytes = 3000;

} // namespace kernelmill::defaults

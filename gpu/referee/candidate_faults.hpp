#pragma once

// INTERNAL to gpu/referee: how faults of a candidate are told, and whose fault it was where the
// referee saw that something ended, but not why.

#include <cstdint>
#include <optional>
#include <string>

#include "messages/error.hpp"

namespace kernelmill {

/// Of the host's memory, which a candidate on a GPU takes too: pinned, or by new.
error out_of_memory_fault(uint64_t limit_bytes, bool on_gpu);

/// What the driver said when the context was lost: "finish a call (CUDA_ERROR_...)".
error device_fault(const std::string& said);

/// Whether a control has to say whose fault it was: a fault of a kind that the machine can cause in
/// anybody, or one that is not the candidate's although its code was in. Nothing that a process
/// says once it has loaded a candidate decides between the classes.
bool wants_control(const error& fault);

/// Whose fault it was. The control, the task's baseline in the same slot, ran at once after the
/// candidate was gone: if it works, the machine is well, and whatever went wrong went wrong by the
/// candidate.
error blamed(const error& fault, bool control_works);

/// The category of what failed beside a candidate and works without it.
inline constexpr const char* disturbance = "disturbed_referee";

/// Categories of what only somebody outside can do: who starts our processes is gone or does not
/// answer, or a candidate was killed; the last, or the kernel for want of memory. The filter of
/// system calls lets no candidate end itself in a way that looks like that.
inline constexpr const char* lost_spawner = "spawner_lost";
inline constexpr const char* killed_outside = "killed_outside";
inline constexpr const char* killed_by_somebody = "killed";

/// Whether a fault is of one of these categories.
bool is_end_by_others(const error& fault);

/// How often the kernel has ended somebody for want of memory until now.
struct memory_kills {
  std::optional<uint64_t> near;     ///< as kills_for_memory()
  std::optional<uint64_t> anywhere; ///< as kills_for_memory_anywhere()

  static memory_kills now();
};

/// Whether a fault is of such a category, and not for want of memory, as far as that is not plain.
bool is_of_outsiders(const error& fault, const memory_kills& before);

} // namespace kernelmill

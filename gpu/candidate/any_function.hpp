#pragma once

// INTERNAL to candidate processes: calls a task's function, whatever its signature.

#include <cstdint>

#include "gpu/candidate/protocol.hpp"

namespace kernelmill {

/// Pointers and 32-bit integers are both of class INTEGER in the System V ABI: they take the same
/// registers and stack slots in order, and a callee reads only the low half of a slot for an int.
/// So one call with all sixteen slots fits every signature; the caller cleans up what the callee
/// does not know of. Float scalars would go elsewhere, so tasks have none.
inline void call_any(void* function, const int64_t (&a)[max_arguments]) {
  using all = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
  static_assert(max_arguments == 16);
  reinterpret_cast<all>(function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                                  a[11], a[12], a[13], a[14], a[15]);
}

} // namespace kernelmill

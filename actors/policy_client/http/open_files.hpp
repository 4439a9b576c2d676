#pragma once

// Each request in flight is a connection, and each connection an open file. The soft limit is kept
// low by tradition, for programs that use select(); nothing here does.

#include <cstdint>

namespace kernelmill {

/// Raises this process's soft limit of open files to `wanted`, or as far as the hard limit allows;
/// never lowers it. Returns the soft limit.
uint64_t allow_open_files(uint64_t wanted) noexcept;

/// What a client or a server needs for so many requests in flight.
constexpr uint64_t open_files_for(uint64_t in_flight) noexcept {
  return in_flight + in_flight / 8 + 1024;
}

} // namespace kernelmill

#pragma once

// A candidate of the contract `native` for the CPU, compiled once more with sanitizers, in the
// sandbox. They are g++'s: MemorySanitizer, which finds reads of what was never written, is clang's
// alone.

#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "messages/error.hpp"

namespace kernelmill {

enum class host_check : unsigned char {
  memory,  ///< AddressSanitizer and UndefinedBehaviorSanitizer
  threads, ///< ThreadSanitizer, with an OpenMP that it can see (watched_openmp.cpp)
};

/// "memcheck" and "racecheck": the names that compute-sanitizer has for the same.
std::string_view to_string(host_check x);

/// Why a CPU has no initcheck.
inline constexpr const char* no_initcheck =
    "initcheck does not exist on a CPU: reads of what was never written are found by "
    "MemorySanitizer, which g++ does not have";

struct host_compiler {
  std::string path = "/usr/bin/g++";
  uint64_t memory_bytes = uint64_t{4} << 30;
  std::vector<int> cpus = {}; ///< where it runs; empty: where the sandbox puts it
};

/// The library that must be loaded before all others, by its real path. Fails with "tool_missing"
/// where this compiler came without it.
expected<std::string> sanitizer_runtime(sandbox& walls, const host_compiler& by, host_check check);

/// Returns the bytes of the library. Fails with class candidate where the source does not compile
/// so, as with a part of OpenMP that the thread check does not know.
expected<std::string> build_checked(sandbox& walls, const host_compiler& by, host_check check,
                                    const std::string& source, int deadline_ms);

/// INTERNAL: the source of what stands in for libgomp.
extern const char* const watched_openmp_text;

} // namespace kernelmill

#pragma once

// One run of a compiler in the sandbox: text goes in by memory files, the product comes out by
// one, and no directory of the machine is writable.

#include <string>
#include <vector>

#include "gpu/process/core_use.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

/// How far compilers stand behind slots, whose calls and clocks need their cores at once.
/// Not more: beside eight busy threads a compiler ten steps behind had a core for 1.2 of 60 s.
inline constexpr uint64_t behind_slots = 5;

struct compiler_job {
  std::vector<std::string> argv; ///< "-o" product_path where a product is wanted
  std::string path = "/usr/bin"; ///< PATH of its processes
  std::string source_name;       ///< in /build, where the compiler runs
  std::string source;
  std::vector<file_copy> files; ///< more than the source
  std::vector<std::string> environment;
  std::vector<bind_mount> mounts;
  int deadline_ms = 60'000; ///< of the compiler's work; without a core it may take longer
  uint64_t memory_bytes = 0;
  uint64_t address_space = 0; ///< 0: memory_bytes
  uint64_t cpu_seconds = 0;
  uint64_t process_count = 64;
  std::vector<int> cpus;                        ///< where it runs; empty: where `walls` puts it
  uint64_t product_bytes = uint64_t{128} << 20; ///< the largest file that it may write
  size_t kept_text = 64 << 10;                  ///< of what it says
};

/// Where the compiler writes its product.
inline constexpr const char* product_path = "/proc/self/fd/5";

struct compiler_outcome {
  exit_status status;
  bool timed_out = false;     ///< the deadline passed; a busy machine can cause that too
  core_use cores;             ///< of its processes, until then
  bool out_of_memory = false; ///< the cgroup killed something
  bool flooded = false;       ///< it said more than any person would read, and was killed
  bool killed = false;        ///< by something outside the sandbox: no source can do that
  std::string text;           ///< stdout and stderr, the first of it
  descriptor product;         ///< a memory file
  double seconds = 0;

  /// Whether another run would end the same way, so that the verdict may be remembered.
  bool repeatable() const noexcept { return !timed_out && !killed; }
};

/// Fails only when the compiler could not be run. One that something outside ended is run again,
/// four times at most. What a failure says of the machine, build_attribution.hpp decides.
expected<compiler_outcome> run_compiler(sandbox& walls, const compiler_job& job);

/// A memory file that holds `bytes`, at its start.
expected<descriptor> memory_file(const std::string& bytes);

} // namespace kernelmill

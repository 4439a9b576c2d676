#pragma once

// What compute-sanitizer wrote (memcheck, racecheck, initcheck, synccheck), as findings. Its lines
// begin with "========="; all others are the program's.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

enum class memory_fault : unsigned char {
  out_of_bounds,
  misaligned,
  uninitialized, ///< a read of what nobody wrote
  race,
  barrier, ///< a barrier that not all threads of a block reach
  leak,
  api_error,      ///< a call of CUDA's, or of an allocator, that failed
  use_after_free, ///< of memory or of a variable whose life is over, or a second free
  undefined,      ///< arithmetic without a defined result: an overflow, a shift too far
  other,
};

std::string_view to_string(memory_fault x);

/// Where in the code: what the tool knows of it, which depends on -lineinfo.
struct code_place {
  std::string kernel;
  std::string file; ///< without folders; empty: not known
  uint32_t line = 0;
  std::string offset; ///< "0x150", within the kernel
};

struct sanitizer_finding {
  memory_fault family = memory_fault::other;
  bool is_warning = false;
  std::string words;  ///< the tool's own first line
  std::string space;  ///< "global", "shared", "local"; on a CPU "heap", "stack", "global"
  std::string access; ///< "read", "write", "atomic"
  uint32_t bytes = 0;
  code_place at;
  std::vector<code_place> others; ///< of a race: the accesses on the other side
  std::string thread;             ///< "(31,0,0)"; on a CPU "T1"
  std::string block;
  std::string address;
  uint64_t hazards = 0; ///< of a race
  uint64_t times = 1;   ///< findings that differ in thread and address alone
  std::string hint;     ///< one thing to look at
};

enum class sanitizer_problem : unsigned char {
  none,
  not_supported, ///< this machine's GPU, driver or address layout
  no_report,     ///< the tool said nothing, or never came to its summary
};

struct sanitizer_report {
  std::vector<sanitizer_finding> findings; ///< at most 64
  uint64_t errors = 0;                     ///< as the tool counts
  uint64_t warnings = 0;
  sanitizer_problem problem = sanitizer_problem::none;
  std::string words; ///< the tool's own, on the problem
};

/// Never fails: what cannot be read is a problem of the report.
sanitizer_report read_sanitizer_report(std::string_view text);

} // namespace kernelmill

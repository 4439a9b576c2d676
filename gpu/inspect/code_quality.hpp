#pragma once

// Facts of a kernel's code, counted in its listing. Nothing here is guessed: what instructions do
// not tell, such as whether a warp's accesses are coalesced, is not said.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/inspect/listing.hpp"

namespace kernelmill {

struct line_count {
  uint32_t line = 0;
  uint32_t instructions = 0;

  bool operator==(const line_count&) const = default;
};

/// Instructions of one kind. Those without a known line are counted, and have no place in `lines`.
struct counted_code {
  std::string_view what; ///< "barriers", "tensor cores", "global loads", ...
  uint32_t instructions = 0;
  std::vector<line_count> lines; ///< most instructions first; at most 12
};

/// Loads or stores of one space.
struct counted_accesses : counted_code {
  std::map<uint32_t, uint32_t>
      by_bits; ///< bits that one instruction moves a thread -> instructions

  /// Of those of 64 bits or more. REQUIRES: instructions > 0.
  double wide_share() const;
};

/// The same instruction of one line, several times in one pass of a loop: by unrolling, or because
/// the line says it several times.
struct repeated_code {
  uint32_t line = 0;
  std::string opcode;
  uint32_t times = 0;
};

struct loop_facts {
  uint32_t first_line = 0, last_line = 0; ///< of the source, of what is in the body; 0: not known
  uint32_t instructions = 0;              ///< of a pass, inner loops counted once
  uint32_t depth = 1;                     ///< 2: within another loop
  uint32_t barriers = 0;
  std::vector<repeated_code> repeated; ///< inner loops left out; most often first; at most 4
};

struct live_peak {
  uint32_t registers = 0; ///< general ones
  uint32_t line = 0;      ///< of the source; 0: not known
};

struct code_quality {
  std::string name;
  uint32_t instructions = 0;
  std::map<std::string, uint32_t> mix;
  /// Loads and stores of global, shared and local memory that there are.
  std::vector<counted_accesses> accesses;
  /// "tensor cores", "double precision", "barriers", "atomics", "asynchronous copies",
  /// "local memory" and "calls": each, also where there is none.
  std::vector<counted_code> kinds;
  std::optional<std::vector<loop_facts>> loops; ///< nothing: the listing does not tell them
  std::optional<live_peak> live;
  /// Whether a parameter of the kernel is of the type double; nothing where its name tells no
  /// types, or one that is not built in.
  std::optional<bool> takes_doubles;
};

code_quality quality_of(const kernel_listing& x);

} // namespace kernelmill

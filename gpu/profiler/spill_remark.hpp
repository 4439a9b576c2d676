#pragma once

// A diagnostic of a build that says where a kernel spills registers: "spill in sums(float*): 6
// instructions of local memory". A build of its own with a table of lines tells that.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelmill {

inline constexpr const char* spill_remark_severity = "remark";

struct spill_place {
  std::string kernel; ///< demangled
  uint32_t instructions = 0;
};

std::string spill_remark(const spill_place& x);

/// Nothing of other messages.
std::optional<spill_place> read_spill_remark(std::string_view message);

} // namespace kernelmill

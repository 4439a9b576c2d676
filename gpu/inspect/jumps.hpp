#pragma once

// INTERNAL to gpu/inspect: where control goes behind an instruction.

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelmill {

struct code_jump {
  bool goes_on = true;             ///< to the next instruction, perhaps
  bool jumps = false;              ///< to `label` or `address`, perhaps
  std::string_view label;          ///< "$L__BB0_1", ".L_x_3"
  std::optional<uint32_t> address; ///< of SASS without labels

  /// Whether it jumps to where only the running program knows.
  bool is_indirect() const { return jumps && label.empty() && !address; }
};

/// Of one instruction of PTX, SASS or GCN. A call goes on.
code_jump jump_of(std::string_view instruction);

/// Whether a label begins a function of its own within a kernel's SASS.
bool is_function(std::string_view label);

} // namespace kernelmill

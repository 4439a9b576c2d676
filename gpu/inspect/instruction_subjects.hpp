#pragma once

// What an instruction does, by its name alone: PTX, SASS or GCN.

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelmill {

/// Whether an instruction is about one of: "local memory", "double precision", "atomics",
/// "barriers", "shared memory", "global memory", "tensor cores", "asynchronous copies", "calls".
bool is_about(std::string_view instruction, std::string_view subject);

enum class memory_space : unsigned char { global, shared, local };

/// A load or store, and how many bits of a thread one instruction moves.
struct memory_access {
  memory_space space = memory_space::global;
  bool stores = false;
  uint32_t bits = 32;
};

/// Nothing of other instructions, of atomics, and of loads and stores whose space the instruction
/// does not tell.
std::optional<memory_access> access_of(std::string_view instruction);

} // namespace kernelmill

#pragma once

// What a compiler is, found out by asking it once.

#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct compiler_facts {
  std::string identity;             ///< "g++ 12.2.0 -std=c++20 -O3 -march=native ..."
  std::string digest;               ///< of version, flags and what -march=native means here
  std::vector<std::string> compile; ///< compiler and flags, without input and output
  std::vector<std::string> link;    ///< what makes a library of it
};

/// Asks for version and resolved flags. Fails with "toolchain_missing".
expected<compiler_facts> ask_compiler(sandbox& walls, const std::string& compiler,
                                      const std::vector<std::string>& extra_flags);

} // namespace kernelmill

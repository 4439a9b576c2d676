#pragma once

// The contract of a candidate: its shape, and with that its compiler and its runner.

#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace kernelmill {

enum class contract_kind : unsigned char {
  native,  ///< a library with the task's function
  device,  ///< device code with a launch line, for CUDA
  torch,   ///< a module in Python with ModelNew
  program, ///< source files that the task's own commands build and test
};

/// Returns the name used in JSON, in messages and in texts, e.g. "native".
const char* to_string(contract_kind x) noexcept;

/// Fails with "unsupported_contract" (configuration) when there is none of that name.
expected<contract_kind> contract_of(std::string_view name);

} // namespace kernelmill

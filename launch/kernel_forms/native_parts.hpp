#pragma once

// What the files of a native kernel share.

#include <string>

#include "launch/kernel_forms/exported_kernel.hpp"

namespace kernelmill::kernel_forms {

/// min, max and ceil_div of a task's expressions, as C++ of a namespace of their own.
extern const char* const expression_helpers;

/// "const float* x, float* y, int rows_value": scalars under another name, for the 64-bit values of
/// expressions.
std::string launch_parameters(const task& x);

/// ".cpp" or ".cu".
std::string suffix_of(const exported_kernel& x);

/// test/test.cpp or .cu, and the contents of the inputs of each visible case, made with a public
/// seed. Cases of more than 4 MiB of inputs are left out.
out_files native_test(const exported_kernel& x);

} // namespace kernelmill::kernel_forms

#pragma once

// What the forms of a kernel in Python share.

#include <string>

#include "launch/kernel_forms/exported_kernel.hpp"

namespace kernelmill::kernel_forms {

/// "RowSoftmax": the class that a package offers.
std::string class_of(const exported_kernel& x);

/// __init__.py: the class, made of what the candidate in kernel.py defines. Its imports are
/// relative.
std::string torch_init(const exported_kernel& x);

/// A test with unittest; `import_lines` import the class by its name.
std::string torch_test(const exported_kernel& x, const std::string& import_lines);

} // namespace kernelmill::kernel_forms

#pragma once

#include <string>

namespace kernelmill {

/// "0.1.0 (442540487a3c)": all machines of a cluster must be of one.
std::string build_id();

} // namespace kernelmill

#pragma once

#include <string>

#include "messages/error.hpp"

namespace kernelmill::remote {

/// Answers a near end on `in` and `out` until it hangs up: one process of one connection. The
/// sessions lie below `root`. `build` is what this program says of itself.
expected<void> serve_near_end(const std::string& root, const std::string& build, int in, int out);

} // namespace kernelmill::remote

#pragma once

// g++'s sanitizers around a library of the contract `native` for the CPU, in the walls of a
// candidate. The library is built again with them, and its code is in the process that writes the
// report: a finding is believed, since it only harms who forges it; the lack of one pays nothing.

#include <array>
#include <string>

#include "gpu/examine/examine.hpp"
#include "gpu/toolchain/checked_build.hpp"

namespace kernelmill {

/// What wrong results come from most often goes last: the first takes the least time.
inline constexpr std::array host_checks = {host_check::memory, host_check::threads};

/// Builds `source` for one check and calls it on the shown cases of `what`, on fresh contents; both
/// have `options.limit_ms` together. Fails with class candidate where it does not compile so, and
/// with "tool_missing" where g++ came without this sanitizer.
expected<sanitizer_examination> examine_on_host(sandbox& walls, const examine_options& options,
                                                const host_compiler& compiler, const task& what,
                                                const std::string& source, host_check check);

} // namespace kernelmill

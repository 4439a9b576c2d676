#pragma once

// What a toolchain consists of besides its version: headers and libraries that packages bring and
// take away. It is part of every cache key, so that a result from before an installation is not
// used after it.

#include <string>
#include <vector>

namespace kernelmill {

/// A digest of names, sizes and times of change of all files below some folders, about 30 ms for
/// 20,000 of them. A folder that is not there counts as empty; files may stand in the list as well.
std::string stamp_of(const std::vector<std::string>& places);

} // namespace kernelmill

#pragma once

// Reading a file in one piece; what its absence means is the caller's to say.

#include <cstddef>
#include <optional>
#include <string>

namespace kernelmill {

/// Returns the content, also of /proc and /sys, or nothing, with errno set.
std::optional<std::string> read_whole(const std::string& path);

/// The same of an open file, from its beginning, wherever it stands. Reads as many bytes as the
/// file has now: a process that still writes cannot make it longer.
std::optional<std::string> read_whole(int fd);

/// The first bytes of an open file, `most` or fewer, wherever it stands. Empty where it cannot be
/// read.
std::string read_first(int fd, size_t most);

/// The same of the last bytes.
std::string read_last(int fd, size_t most);

} // namespace kernelmill

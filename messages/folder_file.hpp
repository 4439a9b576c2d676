#pragma once

// Files of a folder that a stranger has filled, such as a task: they may be links to anything that
// this process may read. Only what lies in the folder is read.

#include <cstdint>
#include <string>

#include "messages/error.hpp"

namespace kernelmill {

/// Returns the content of the regular file `name` of a folder, which may itself be a link. A link
/// inside is followed where it stays inside. Errors, of the configuration: "missing_file",
/// "bad_task" for what leads out, is no file, or has more than `most` bytes.
expected<std::string> read_in_folder(const std::string& folder, const std::string& name,
                                     uint64_t most = uint64_t{64} << 20);

/// Whether a folder has something of that name: also a link that leads nowhere.
bool is_in_folder(const std::string& folder, const std::string& name);

} // namespace kernelmill

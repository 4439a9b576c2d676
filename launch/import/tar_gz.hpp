#pragma once

// Packs of problems as suites ship them: a .tar.gz with a few plain files, written by any tool.
// Read into memory, with a limit; nothing is unpacked to a disk.

#include <cstdint>
#include <map>
#include <string>

#include "messages/error.hpp"

namespace kernelmill {

/// Returns the text of each plain file by its name, without folders. Extended headers are passed
/// over. Errors: "missing_file"; "bad_problem" for what is no .tar.gz, is cut off or damaged, holds
/// a link or a device, names a file twice, or unpacks to more than `most` bytes.
expected<std::map<std::string, std::string>> read_tar_gz(const std::string& path,
                                                         uint64_t most = uint64_t{256} << 20);

} // namespace kernelmill

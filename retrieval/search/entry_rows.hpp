#pragma once

// The entries of an index as a file: the names of their fields, then field after field. Long texts
// stay in the file, which is mapped.

#include <string>
#include <vector>

#include "retrieval/search/index.hpp"

namespace kernelmill {

/// Returns the digest of the file.
expected<std::string> write_entry_file(const std::string& path,
                                       const std::vector<index_entry>& entries);

/// Refuses another file than the one with `digest`.
expected<std::vector<index_entry>> map_entry_file(const std::string& path,
                                                  const std::string& digest);

} // namespace kernelmill

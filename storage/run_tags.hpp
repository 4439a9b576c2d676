#pragma once

// Words that people put on a run to find it again: tags.json of its folder.

#include <string>
#include <vector>

#include "messages/error.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

/// In alphabetical order; none of a file that is not there or cannot be read.
std::vector<std::string> tags_of(const run_directory& run);

/// Adds tags and takes others away; returns those that the run has then. Errors: "usage" for a tag
/// that is none: it has up to 64 letters, digits, '.', '_' and '-'.
expected<std::vector<std::string>> change_tags(const run_directory& run,
                                               const std::vector<std::string>& added,
                                               const std::vector<std::string>& removed);

} // namespace kernelmill

#pragma once

// kernel_rl's traces.jsonl, a line a turn; those of our own runs have the same keys and can be read
// back. docs/reference/imports.md says which key becomes what.

#include <string>
#include <vector>

#include "launch/import/foreign_run.hpp"

namespace kernelmill {

struct foreign_traces {
  std::vector<foreign_group> groups;
  std::string sha256;              ///< of the file
  nlohmann::ordered_json settings; ///< `mode`, `renderer` and others: the values that lines have
};

/// Errors: "bad_import" with file, line and key; those of the disk.
expected<foreign_traces> read_kernel_rl_traces(const std::string& path);

} // namespace kernelmill

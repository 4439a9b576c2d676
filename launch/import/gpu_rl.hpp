#pragma once

// gpu_rl's run bundles: a folder with manifest.json, a folder of such folders, or a bundle of ours
// (.tar.zst), which has the same files. docs/reference/imports.md says which file becomes what.

#include <string>

#include "launch/import/foreign_run.hpp"

namespace kernelmill {

struct foreign_bundles {
  std::vector<foreign_group> groups; ///< one a task
  std::string sha256;                ///< of the files that were read, in the order of their paths
};

/// Errors: "bad_import" with the file, "bad_bundle", those of the disk.
expected<foreign_bundles> read_gpu_rl_bundles(const std::string& path);

} // namespace kernelmill

#pragma once

// Builds what tasks bring along (reference.cpp, baseline.cpp). It is trusted, so it is compiled
// outside the sandbox, with the flags that candidates get, and kept under the hash of all that
// went in, with the digest of what came out: a damaged one is built again.

#include <string>
#include <vector>

#include "gpu/process/process.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "gpu/toolchain/hip_layer.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Thread safety: any number of threads may build at once.
class trusted_builder {
public:
  trusted_builder(spawner& processes, std::string cache_directory, build_target target = {});

  const build_target& target() const noexcept { return target_; }

  /// Returns the path of the shared library: made by g++, or by nvcc or hipcc for a source that
  /// ends in .cu or .hip.
  /// A C++ source that defines the function of `declaration` with other parameters is refused: it
  /// would be called with what it does not expect. Errors: "bad_reference", "missing_file", and of
  /// a machine that cannot build at all "toolchain_missing" or "toolchain_failed".
  expected<std::string> build(const std::string& source_path, const std::string& declaration = {});

private:
  expected<void> compile(const std::vector<std::string>& command, const std::string& product,
                         const std::string& source_path, const std::string& declaration);
  expected<void> control(const std::vector<std::string>& command, const std::string& product);
  expected<compiler_outcome> run(std::vector<std::string> command, const std::string& product,
                                 const std::string& source_path, const std::string& declaration);
  expected<std::vector<std::string>> command_for(const std::string& source_path) const;

  spawner& processes_;
  std::string cache_directory_;
  build_target target_;
};

} // namespace kernelmill

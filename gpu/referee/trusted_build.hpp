#pragma once

// Builds what tasks bring along (reference.cpp, baseline.cpp). It is trusted, so it is compiled
// outside the sandbox, with the flags that candidates get, and kept under the hash of all that
// went in.

#include <string>

#include "gpu/process/process.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Thread safety: none.
class trusted_builder {
public:
  trusted_builder(spawner& processes, std::string cache_directory);

  /// Returns the path of the shared library.
  expected<std::string> build(const std::string& source_path);

private:
  expected<void> compile(const std::string& source_path, const std::string& output);

  spawner& processes_;
  std::string cache_directory_;
};

} // namespace kernelmill

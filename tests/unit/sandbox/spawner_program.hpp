#pragma once

#include <filesystem>
#include <string>

namespace kernelmill {

/// The spawner of the build that this test program belongs to.
inline std::string spawner_program() {
  auto test = std::filesystem::read_symlink("/proc/self/exe");
  return test.parent_path().parent_path() / "bin/kernelmill-spawner";
}

} // namespace kernelmill

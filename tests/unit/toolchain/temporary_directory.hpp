#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace kernelmill {

/// A directory that goes with the value.
class temporary_directory {
public:
  temporary_directory() {
    auto name = (std::filesystem::temp_directory_path() / "kernelmill-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

} // namespace kernelmill

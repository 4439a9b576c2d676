#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace kernelmill {

/// A folder that is gone after the test.
struct folder {
  std::string path = [] {
    auto name = (std::filesystem::temp_directory_path() / "kernelmill-XXXXXX").string();
    return std::string{::mkdtemp(name.data())};
  }();
  folder() = default;
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() { std::filesystem::remove_all(path); }
};

} // namespace kernelmill

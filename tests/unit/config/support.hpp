#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace kernelmill::test {

/// A directory that goes with the test.
class scratch_directory {
public:
  scratch_directory() {
    auto pattern = (std::filesystem::temp_directory_path() / "kernelmill-config-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) ? pattern : std::string{};
  }
  ~scratch_directory() {
    std::error_code code;
    if (!path_.empty()) std::filesystem::remove_all(path_, code);
  }
  const std::string& path() const { return path_; }

  std::string write(const std::string& name, const std::string& text) const {
    auto path = std::filesystem::path{path_} / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary} << text;
    return path.string();
  }

private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

inline std::string source_directory() {
  const char* path = std::getenv("KERNELMILL_SOURCE_DIR");
  return path ? path : ".";
}

} // namespace kernelmill::test

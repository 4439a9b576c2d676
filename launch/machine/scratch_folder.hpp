#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include <stdlib.h>

namespace kernelmill {

/// A folder of this user alone below the machine's for temporary files, gone at the end.
class scratch_folder {
public:
  /// `purpose` is a part of its name. The path is empty where none can be made.
  explicit scratch_folder(const std::string& purpose) {
    auto root = std::filesystem::temp_directory_path();
    auto pattern = (root / ("kernelmill-" + purpose + "-XXXXXX")).string();
    if (const char* made = ::mkdtemp(pattern.data())) path_ = made;
  }
  ~scratch_folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::string& path() const { return path_; }

private:
  std::string path_;
};

} // namespace kernelmill

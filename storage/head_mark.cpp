#include "storage/head_mark.hpp"

#include <filesystem>

namespace kernelmill {

std::string head_mark_of(const std::string& directory) {
  return directory + "/head.json";
}

bool is_of_head(const run_directory& run) {
  std::error_code unreadable;
  return std::filesystem::exists(head_mark_of(run.path), unreadable);
}

} // namespace kernelmill

#include "launch/commands/sources.hpp"

#include <filesystem>

#include "launch/config/paths.hpp"

namespace kernelmill::commands {

config_sources sources_of(const std::vector<std::string>& words) {
  config_sources result;
  for (const auto& word : words) {
    if (is_override(word))
      result.overrides.push_back(word);
    else
      result.files.push_back(locate_config(word));
  }
  std::error_code absent;
  if (auto own = user_config_file(); std::filesystem::exists(own, absent)) result.user_file = own;
  result.environment = process_environment();
  std::error_code code;
  result.directory = std::filesystem::current_path(code).string();
  return result;
}

} // namespace kernelmill::commands

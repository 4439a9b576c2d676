#include "launch/commands/sources.hpp"

#include <filesystem>

namespace kernelmill::commands {

config_sources sources_of(const std::vector<std::string>& words) {
  config_sources result;
  for (const auto& word : words) {
    if (is_override(word))
      result.overrides.push_back(word);
    else
      result.files.push_back(locate_config(word));
  }
  result.environment = process_environment();
  std::error_code code;
  result.directory = std::filesystem::current_path(code).string();
  return result;
}

} // namespace kernelmill::commands

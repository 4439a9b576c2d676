#include "launch/commands/run_name.hpp"

#include <cctype>
#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace kernelmill::commands {

std::string stem_of_run(const config_sources& sources) {
  auto stem = sources.files.empty() ? std::string{"run"}
                                    : std::filesystem::path{sources.files.front()}.stem().string();
  for (auto& c : stem)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  return stem;
}

std::string made_run_name(const config_sources& sources) {
  return fmt::format("{}-{:%Y%m%d-%H%M%S}", stem_of_run(sources),
                     fmt::localtime(std::time(nullptr)));
}

void name_run(run_config& config, const config_sources& sources) {
  std::error_code code;
  bool made = config.run.name.empty() && config.run.dir.empty();
  if (config.run.name.empty())
    config.run.name =
        made ? made_run_name(sources)
             : std::filesystem::path{config.run.dir + "/"}.parent_path().filename().string();
  if (!config.run.dir.empty()) return;
  auto base = std::filesystem::current_path(code) / "runs";
  auto name = config.run.name;
  for (int n = 2; made && std::filesystem::exists(base / config.run.name, code);
       ++n) // two in one second
    config.run.name = name + "-" + std::to_string(n);
  config.run.dir = (base / config.run.name).string();
}

std::string name_with_folder(const std::string& name, const std::string& directory) {
  auto folder = std::filesystem::path{directory}.filename().string();
  return folder.empty() || folder == name ? name : folder + " (" + name + ")";
}

} // namespace kernelmill::commands

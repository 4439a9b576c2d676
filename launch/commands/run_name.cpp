#include "launch/commands/run_name.hpp"

#include <cctype>
#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace kernelmill::commands {

std::string made_run_name(const config_sources& sources) {
  auto stem = sources.files.empty() ? std::string{"run"}
                                    : std::filesystem::path{sources.files.front()}.stem().string();
  for (auto& c : stem)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  return fmt::format("{}-{:%Y%m%d-%H%M%S}", stem, fmt::localtime(std::time(nullptr)));
}

} // namespace kernelmill::commands

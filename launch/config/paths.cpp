#include "launch/config/paths.hpp"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <unistd.h>

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

bool holds_configs(const fs::path& directory) {
  std::error_code code;
  return fs::is_directory(directory / "configs", code);
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

} // namespace

std::string program_directory() {
  std::error_code code;
  auto program = fs::read_symlink("/proc/self/exe", code);
  return code ? std::string{} : program.parent_path().string();
}

std::string data_directory() {
  std::error_code code;
  if (const char* home = variable("KERNELMILL_HOME")) return fs::absolute(home, code).string();
  fs::path program = program_directory();
  // build/bin/kernelmill lies two levels below the tree, build/tests/x_test too.
  for (const auto& candidate : {program / ".." / "share" / "kernelmill", program / ".." / ".."})
    if (holds_configs(candidate)) return fs::weakly_canonical(candidate, code).string();
  if (holds_configs(KERNELMILL_SOURCE_TREE)) return KERNELMILL_SOURCE_TREE;
  return {};
}

std::string helper_program(const std::string& name) {
  fs::path program = program_directory();
  for (const auto& directory :
       {program, program / ".." / "libexec" / "kernelmill", program / ".." / "bin"})
    if (auto path = directory / name; ::access(path.c_str(), X_OK) == 0)
      return path.lexically_normal().string();
  return {};
}

std::string default_tasks_root() {
  auto home = data_directory();
  return home.empty() ? home : home + "/configs/tasks";
}

std::string user_tasks_root() {
  // XDG's rule: a path that is not absolute is to be ignored.
  if (const char* data = variable("XDG_DATA_HOME"); data && *data == '/')
    return std::string{data} + "/kernelmill/tasks";
  if (const char* home = variable("HOME"))
    return std::string{home} + "/.local/share/kernelmill/tasks";
  return {};
}

std::string user_config_file() {
  if (const char* config = variable("XDG_CONFIG_HOME"); config && *config == '/')
    return std::string{config} + "/kernelmill/config.json";
  if (const char* home = variable("HOME"))
    return std::string{home} + "/.config/kernelmill/config.json";
  return {};
}

std::vector<std::string> default_tasks_roots() {
  std::vector<std::string> result;
  if (auto shipped = default_tasks_root(); !shipped.empty()) result.push_back(shipped);
  std::error_code code;
  if (auto own = user_tasks_root(); !own.empty() && fs::is_directory(own, code))
    result.push_back(own);
  return result;
}

std::string default_corpus() {
  auto home = data_directory();
  return home.empty() ? home : home + "/configs/knowledge";
}

std::string default_build_cache() {
  if (const char* cache = variable("XDG_CACHE_HOME"))
    return std::string{cache} + "/kernelmill/build";
  if (const char* home = variable("HOME"); home && ::access(home, W_OK) == 0)
    return std::string{home} + "/.cache/kernelmill/build";
  return "/tmp/kernelmill-" + std::to_string(::getuid()) + "/build";
}

} // namespace kernelmill

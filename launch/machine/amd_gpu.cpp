#include "launch/machine/amd_gpu.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

namespace kernelmill {

namespace {

// "gfx_target_version 90010" is 9.0.10, gfx90a; a processor has 0.
std::string architecture_of(unsigned version) {
  if (version == 0) return {};
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

unsigned target_version(const std::string& properties) {
  std::ifstream in{properties};
  std::string name;
  for (unsigned long value; in >> name >> value;)
    if (name == "gfx_target_version") return static_cast<unsigned>(value);
  return 0;
}

bool has_library() {
  for (auto* name : {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"})
    if (auto* handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      ::dlclose(handle);
      return true;
    }
  return false;
}

} // namespace

std::string amd_architecture(const std::string& topology) {
  std::error_code problem;
  std::vector<std::string> nodes;
  for (const auto& x : std::filesystem::directory_iterator{topology, problem})
    nodes.push_back(x.path() / "properties");
  std::sort(nodes.begin(), nodes.end());
  for (const auto& x : nodes)
    if (auto found = architecture_of(target_version(x)); !found.empty()) return found;
  return {};
}

std::string amd_runtime_text() {
  auto text = [](bool found) { return found ? "found" : "not found"; };
  return fmt::format("libamdhip64.so is {}, /dev/kfd is {}", text(has_library()),
                     text(::access("/dev/kfd", F_OK) == 0));
}

} // namespace kernelmill

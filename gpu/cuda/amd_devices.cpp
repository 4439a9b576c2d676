#include "gpu/cuda/amd_devices.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

namespace kernelmill::cuda {

namespace {

namespace fs = std::filesystem;

using facts = std::map<std::string, uint64_t>;

// Lines like "gfx_target_version 90010".
facts read_facts(const fs::path& file) {
  facts result;
  std::ifstream in{file};
  std::string name;
  for (uint64_t value = 0; in >> name >> value;) result[name] = value;
  return result;
}

std::string first_line(const fs::path& file) {
  std::ifstream in{file};
  std::string line;
  std::getline(in, line);
  return line;
}

// "gfx_target_version 90010" is 9.0.10, gfx90a; a processor has 0.
std::string architecture_of(uint64_t version) {
  if (version == 0) return {};
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

// Folders of the topology are numbers.
std::vector<fs::path> folders_of(const std::string& topology) {
  std::vector<std::pair<unsigned, fs::path>> found;
  std::error_code problem;
  for (const auto& x : fs::directory_iterator{topology, problem}) {
    auto name = x.path().filename().string();
    unsigned number = 0;
    auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failed == std::errc{} && end == name.data() + name.size())
      found.emplace_back(number, x.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> result;
  for (auto& [number, path] : found) result.push_back(std::move(path));
  return result;
}

uint64_t memory_of(const fs::path& folder) {
  uint64_t result = 0;
  std::error_code problem;
  for (const auto& bank : fs::directory_iterator{folder / "mem_banks", problem}) {
    auto about = read_facts(bank.path() / "properties");
    bool local = about["heap_type"] == 1 || about["heap_type"] == 2;
    if (local) result += about["size_in_bytes"];
  }
  return result;
}

// "1: 2100Mhz *" is the one in use.
unsigned clock_in(const fs::path& file) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);) {
    auto colon = line.find(": ");
    unsigned result = 0;
    if (colon == line.npos || line.find('*') == line.npos) continue;
    auto* from = line.data() + colon + 2;
    if (std::from_chars(from, line.data() + line.size(), result).ec == std::errc{}) return result;
  }
  return 0;
}

uint64_t number_in(const fs::path& file) {
  std::ifstream in{file};
  uint64_t result = 0;
  return in >> result ? result : 0;
}

} // namespace

std::vector<gpu> amd_gpus(const std::string& topology) {
  std::vector<gpu> result;
  for (const auto& folder : folders_of(topology)) {
    auto about = read_facts(folder / "properties");
    gpu x;
    x.architecture = architecture_of(about["gfx_target_version"]);
    if (x.architecture.empty()) continue;
    x.index = static_cast<unsigned>(result.size());
    auto marketed = first_line(folder / "name");
    x.name = "AMD " + (marketed.empty() ? x.architecture : marketed);
    auto id = about["unique_id"];
    x.uuid = id != 0 ? fmt::format("GPU-{:016x}", id) : std::to_string(x.index);
    x.node = fmt::format("/dev/dri/renderD{}", about["drm_render_minor"]);
    x.memory_bytes = memory_of(folder);
    result.push_back(std::move(x));
  }
  return result;
}

gpu_state amd_state(const gpu& which, const std::string& cards) {
  gpu_state result;
  auto device = fs::path{cards} / fs::path{which.node}.filename() / "device";
  result.clock_mhz = clock_in(device / "pp_dpm_sclk");
  result.memory_clock_mhz = clock_in(device / "pp_dpm_mclk");
  std::error_code problem;
  for (const auto& sensor : fs::directory_iterator{device / "hwmon", problem}) {
    auto power = number_in(sensor.path() / "power1_average");
    if (power == 0) power = number_in(sensor.path() / "power1_input");
    result.milliwatts = static_cast<unsigned>(power / 1000);
    result.celsius = static_cast<unsigned>(number_in(sensor.path() / "temp1_input") / 1000);
  }
  return result;
}

} // namespace kernelmill::cuda

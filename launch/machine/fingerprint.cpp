#include "launch/machine/fingerprint.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "launch/machine/accelerators.hpp"
#include "launch/machine/python.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

json known(std::string x) {
  return x.empty() ? json(nullptr) : json(std::move(x));
}

/// What stands behind "KEY:" or "KEY=" in the first such line of a file, without quotes.
std::string value_in(const char* path, std::string_view key) {
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    auto begin = line.find_first_not_of(" \t:=\"", key.size());
    if (begin == line.npos) return {};
    return line.substr(begin, line.find_last_not_of(" \t\"") - begin + 1);
  }
  return {};
}

json host_json() {
  utsname name{};
  ::uname(&name);
  cpu_set_t set;
  CPU_ZERO(&set);
  int usable = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return {{"cpu", known(value_in("/proc/cpuinfo", "model name"))},
          {"cores", usable},
          {"memory_kb", std::strtoull(value_in("/proc/meminfo", "MemTotal").c_str(), nullptr, 10)},
          {"system", known(value_in("/etc/os-release", "PRETTY_NAME"))},
          {"machine", name.machine}};
}

std::string host_kernel() {
  utsname name{};
  return ::uname(&name) == 0 ? name.release : std::string{};
}

json container_runtime() {
  if (std::getenv("KUBERNETES_SERVICE_HOST")) return "kubernetes";
  if (::access("/.dockerenv", F_OK) == 0) return "docker";
  if (::access("/run/.containerenv", F_OK) == 0) return "podman";
  const char* named = std::getenv("container");
  return named && *named ? json(named) : json(nullptr);
}

bool has_mps() {
  const char* folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  auto path = std::string{folder && *folder ? folder : "/tmp/nvidia-mps"} + "/control";
  return ::access(path.c_str(), F_OK) == 0;
}

json clocks_json(const cuda::gpu_monitor& monitor, unsigned at) {
  auto now = monitor.state(at);
  auto most = monitor.settings(at).most_clock_mhz;
  return {{"sm_mhz", now.clock_mhz},
          {"memory_mhz", now.memory_clock_mhz},
          {"most_sm_mhz", most ? json(*most) : json(nullptr)},
          {"throttle_reasons", now.throttle_reasons}};
}

json gpu_json(const cuda::gpu_monitor& monitor, const cuda::gpu& x, unsigned at) {
  auto settings = monitor.settings(at);
  return {
      {"name", x.name},
      {"uuid", x.uuid},
      {"arch", known(x.architecture)},
      {"memory_gb", static_cast<double>(x.memory_bytes) / (1 << 30)},
      {"power_limit_w", settings.power_limit_milliwatts
                            ? json(*settings.power_limit_milliwatts / 1e3)
                            : json(nullptr)},
      {"clock_state", clocks_json(monitor, at)},
      {"mig_mode", settings.mig ? json(*settings.mig ? "enabled" : "disabled") : json(nullptr)}};
}

/// Of the GPUs that judge here, in the order of the backend's; none on a CPU.
json gpus_json(const chosen_backend& backend) {
  auto result = json::array();
  auto monitor = backend.gpus.empty() ? expected<cuda::gpu_monitor>{tl::unexpected<error>{error{}}}
                                      : cuda::gpu_monitor::open();
  if (!monitor) return result;
  for (const auto& wanted : backend.gpus)
    for (unsigned i = 0; i < monitor->gpus().size(); ++i)
      if (monitor->gpus()[i].uuid == wanted.uuid) result.push_back(gpu_json(*monitor, wanted, i));
  return result;
}

json tools_json(const accelerator_facts& facts, const std::string& toolchain,
                const std::string& python) {
  json result = {{"kernelmill", std::string{KERNELMILL_VERSION} + " (" + KERNELMILL_GIT + ")"},
                 {"built_with", KERNELMILL_COMPILER},
                 {"compiler", known(toolchain)},
                 {"nvcc", known(facts.nvcc_version)},
                 {"nvrtc", known(facts.nvrtc_version)}};
  auto found =
      python.empty() ? expected<found_python>{tl::unexpected<error>{error{}}} : find_python(python);
  result["python"] = found ? known(found->version) : json(nullptr);
  result["torch"] = found ? known(found->torch) : json(nullptr);
  result["triton"] = found ? known(found->triton) : json(nullptr);
  return result;
}

/// The key of the first GPU; null where there is none.
json first_of(const json& gpus, const char* key) {
  return gpus.empty() ? json(nullptr) : gpus.front()[key];
}

} // namespace

json machine_fingerprint(const chosen_backend& backend, const std::string& toolchain,
                         const std::string& python) {
  bool here = backend.hardware.empty();
  bool cuda = here && backend.on_nvidia();
  auto facts = cuda ? find_accelerators() : accelerator_facts{};
  auto gpus = here ? gpus_json(backend) : json::array();
  std::string runtime;
  if (cuda)
    if (auto monitor = cuda::gpu_monitor::open()) runtime = monitor->runtime_version();
  auto vendor = backend.name == "cpu" ? "cpu" : backend.on_nvidia() ? "nvidia" : "amd";
  return {{"vendor", vendor},
          {"gpu_name", here ? first_of(gpus, "name") : json(backend.hardware)},
          {"arch", gpus.empty() ? known(backend.architecture) : first_of(gpus, "arch")},
          {"driver_version", known(facts.driver_version)},
          {"runtime_version", known(runtime)},
          {"memory_gb", first_of(gpus, "memory_gb")},
          {"power_limit_w", first_of(gpus, "power_limit_w")},
          {"clock_state", first_of(gpus, "clock_state")},
          {"mig_mode", first_of(gpus, "mig_mode")},
          {"mps_mode", cuda ? json(has_mps() ? "on" : "off") : json(nullptr)},
          {"host_kernel", known(host_kernel())},
          {"container_runtime", container_runtime()},
          {"tool_versions", tools_json(facts, toolchain, python)},
          {"backend", backend.name},
          {"judged_here", here},
          {"host", host_json()},
          {"gpus", std::move(gpus)}};
}

} // namespace kernelmill

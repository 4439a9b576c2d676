#include "gpu/referee/candidate_walls.hpp"

#include "gpu/cuda/amd_devices.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t address_space_limit = uint64_t{3} << 30; // thread stacks and arenas reserve much
constexpr uint64_t gpu_file_limit = uint64_t{64} << 20;

// One GPU and nothing else of the driver. It reserves addresses without end, so that limit goes;
// what it may take of real memory, the cgroup limits where there is one.
void add_gpu(sandbox_spec& spec, const candidate_options& options) {
  bool amd = cuda::is_amd_node(options.gpu_node);
  spec.argv.emplace_back(amd ? "amd" : "gpu");
  spec.environment.emplace_back("CUDA_CACHE_DISABLE=1");
  for (auto& variable : small_context_environment()) spec.environment.push_back(variable);
  // ROCm's runtime looks its GPU up in the kernel's files.
  if (amd) spec.mounts.push_back({"/sys", "/sys", false});
  spec.devices = gpu_device_nodes(options.gpu_node);
  auto folder = options.driver.substr(0, options.driver.rfind('/'));
  bool visible = folder.starts_with("/usr/lib") || folder.starts_with("/lib") ||
                 folder.starts_with("/usr/local/lib");
  if (!visible && !folder.empty()) {
    spec.mounts.push_back({folder, "/driver", false});
    spec.environment.emplace_back("LD_LIBRARY_PATH=/driver");
  }
  spec.limits.address_space = no_limit;
  spec.limits.open_files = 1024;
  spec.limits.file_size = gpu_file_limit;
  spec.memory_bytes = candidate_gpu_memory_limit;
  spec.process_count = 256;
}

} // namespace

sandbox_spec candidate_walls(const candidate_options& options, int socket, int printed) {
  sandbox_spec spec;
  spec.argv = {"/kernelmill-candidate"};
  // Passive: threads that spin after a parallel region would slow whoever is timed next.
  spec.environment = {"OMP_NUM_THREADS=" + std::to_string(options.threads),
                      "OMP_WAIT_POLICY=passive", "OMP_DYNAMIC=false", "LC_ALL=C"};
  spec.mounts = {{options.program, "/kernelmill-candidate", false}};
  spec.descriptors = {{printed, 1}, {printed, 2}, {socket, candidate_socket}};
  spec.cpus = options.cpus;
  spec.limits.address_space = address_space_limit;
  spec.limits.file_size = candidate_printed_limit;
  spec.limits.open_files = 64;
  spec.memory_bytes = candidate_memory_limit;
  spec.process_count = 64;
  spec.tmpfs_bytes = uint64_t{16} << 20;
  spec.may_exec = false;
  if (!options.gpu_node.empty()) add_gpu(spec, options);
  return spec;
}

std::vector<std::string> gpu_device_nodes(const std::string& gpu_node) {
  std::vector<std::string> result;
  if (cuda::is_amd_node(gpu_node)) return {"/dev/kfd", gpu_node};
  for (const std::string& node :
       {gpu_node, std::string{"/dev/nvidiactl"}, std::string{"/dev/nvidia-uvm"},
        std::string{"/dev/nvidia-uvm-tools"}})
    if (::access(node.c_str(), F_OK) == 0) result.push_back(node);
  return result;
}

std::vector<std::string> small_context_environment() {
  return {"CUDA_DEVICE_MAX_CONNECTIONS=2", "CUDA_DEVICE_MAX_COPY_CONNECTIONS=1"};
}

} // namespace kernelmill

#include "gpu/cuda/devices.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "gpu/cuda/symbols.hpp"

namespace kernelmill::cuda {

namespace {

using device = void*;

struct memory_figures {
  unsigned long long total, free, used;
};

constexpr int multiprocessor_clock = 1;
constexpr int memory_clock = 2;
constexpr int gpu_temperature = 0;

struct nvml {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, device*) = nullptr;
  int (*name)(device, char*, unsigned) = nullptr;
  int (*uuid)(device, char*, unsigned) = nullptr;
  int (*capability)(device, int*, int*) = nullptr;
  int (*minor)(device, unsigned*) = nullptr;
  int (*memory)(device, memory_figures*) = nullptr;
  int (*clock)(device, int, unsigned*) = nullptr;
  int (*temperature)(device, int, unsigned*) = nullptr;
  int (*power)(device, unsigned*) = nullptr;
  int (*throttling)(device, unsigned long long*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;

  // Told about, not needed: older libraries lack some.
  int (*power_limit)(device, unsigned*) = nullptr;
  int (*most_clock)(device, int, unsigned*) = nullptr;
  int (*mig_mode)(device, unsigned*, unsigned*) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*bus_width)(device, unsigned*) = nullptr;
  int (*cores)(device, unsigned*) = nullptr;
};

tl::unexpected<error> missing(const std::string& cause) {
  return infrastructure_error("nvml_missing", "failed to ask for GPUs: " + cause,
                              "install the NVIDIA driver, or judge on the CPU: --backend cpu, in a "
                              "run evaluation.backend=cpu");
}

expected<nvml> load() {
  void* opened = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return missing(::dlerror());
  nvml x;
  symbols from{opened};
  from.find(x.init, "nvmlInit_v2");
  from.find(x.count, "nvmlDeviceGetCount_v2");
  from.find(x.by_index, "nvmlDeviceGetHandleByIndex_v2");
  from.find(x.name, "nvmlDeviceGetName");
  from.find(x.uuid, "nvmlDeviceGetUUID");
  from.find(x.capability, "nvmlDeviceGetCudaComputeCapability");
  from.find(x.minor, "nvmlDeviceGetMinorNumber");
  from.find(x.memory, "nvmlDeviceGetMemoryInfo");
  from.find(x.clock, "nvmlDeviceGetClockInfo");
  from.find(x.temperature, "nvmlDeviceGetTemperature");
  from.find(x.power, "nvmlDeviceGetPowerUsage");
  from.find(x.throttling, "nvmlDeviceGetCurrentClocksThrottleReasons");
  from.find(x.driver, "nvmlSystemGetDriverVersion");
  if (!from.complete()) return missing("libnvidia-ml.so.1 lacks a function");
  from.find(x.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  from.find(x.most_clock, "nvmlDeviceGetMaxClockInfo");
  from.find(x.mig_mode, "nvmlDeviceGetMigMode");
  from.find(x.cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
  from.find(x.bus_width, "nvmlDeviceGetMemoryBusWidth");
  from.find(x.cores, "nvmlDeviceGetNumGpuCores");
  if (int code = x.init(); code != 0) return missing(fmt::format("nvmlInit returned {}", code));
  return x;
}

const expected<nvml>& library() {
  static const expected<nvml> opened = load();
  return opened;
}

gpu describe(const nvml& x, unsigned index, device which) {
  gpu result;
  result.index = index;
  char text[96] = {};
  if (x.name(which, text, sizeof text) == 0) result.name = text;
  if (x.uuid(which, text, sizeof text) == 0) result.uuid = text;
  int major = 0;
  int minor = 0;
  if (x.capability(which, &major, &minor) == 0)
    result.architecture = fmt::format("sm_{}{}", major, minor);
  unsigned node = index;
  (void)x.minor(which, &node);
  result.node = fmt::format("/dev/nvidia{}", node);
  memory_figures memory{};
  if (x.memory(which, &memory) == 0) result.memory_bytes = memory.total;
  return result;
}

} // namespace

expected<gpu_monitor> gpu_monitor::open() {
  const auto& opened = library();
  KM_TRY(opened);
  gpu_monitor result;
  unsigned count = 0;
  if (opened->count(&count) != 0) return missing("NVML does not count its devices");
  for (unsigned i = 0; i < count; ++i) {
    device which = nullptr;
    if (opened->by_index(i, &which) == 0) result.gpus_.push_back(describe(*opened, i, which));
  }
  if (result.gpus_.empty())
    return infrastructure_error("no_gpu", "failed to find a GPU: the driver knows of none",
                                "use --backend cpu, or see `nvidia-smi`");
  char text[96] = {};
  if (opened->driver(text, sizeof text) == 0) result.driver_version_ = text;
  return result;
}

gpu_state gpu_monitor::state(unsigned index) const {
  gpu_state result;
  const auto& x = *library();
  device which = nullptr;
  if (x.by_index(gpus_[index].index, &which) != 0) return result;
  (void)x.clock(which, multiprocessor_clock, &result.clock_mhz);
  (void)x.clock(which, memory_clock, &result.memory_clock_mhz);
  (void)x.temperature(which, gpu_temperature, &result.celsius);
  (void)x.power(which, &result.milliwatts);
  unsigned long long reasons = 0;
  if (x.throttling(which, &reasons) == 0) result.throttle_reasons = reasons;
  return result;
}

gpu_settings gpu_monitor::settings(unsigned index) const {
  gpu_settings result;
  const auto& x = *library();
  device which = nullptr;
  if (x.by_index(gpus_[index].index, &which) != 0) return result;
  unsigned value = 0, pending = 0;
  if (x.power_limit && x.power_limit(which, &value) == 0) result.power_limit_milliwatts = value;
  if (x.most_clock && x.most_clock(which, multiprocessor_clock, &value) == 0)
    result.most_clock_mhz = value;
  if (x.mig_mode && x.mig_mode(which, &value, &pending) == 0) result.mig = value != 0;
  return result;
}

gpu_peaks gpu_monitor::peaks(unsigned index) const {
  gpu_peaks result;
  const auto& x = *library();
  device which = nullptr;
  if (x.by_index(gpus_[index].index, &which) != 0) return result;
  unsigned clock = 0, bits = 0, cores = 0;
  // Two transfers a clock.
  if (x.most_clock && x.bus_width && x.most_clock(which, memory_clock, &clock) == 0 &&
      x.bus_width(which, &bits) == 0 && clock > 0 && bits > 0)
    result.memory_bytes_per_second = 2e6 * clock * (bits / 8.0);
  if (!x.cores || x.cores(which, &cores) != 0 || cores == 0) return result;
  const auto& architecture = gpus_[index].architecture;
  bool narrow = architecture == "sm_70" || architecture == "sm_75" || architecture == "sm_80";
  result.multiprocessors = cores / (narrow ? 64 : 128);
  if (x.most_clock && x.most_clock(which, multiprocessor_clock, &clock) == 0 && clock > 0)
    result.flops_per_second = 2e6 * clock * cores;
  return result;
}

std::string gpu_monitor::runtime_version() const {
  const auto& x = *library();
  int version = 0;
  if (!x.cuda_version || x.cuda_version(&version) != 0) return {};
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

} // namespace kernelmill::cuda

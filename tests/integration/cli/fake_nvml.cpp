// An NVML of two GPUs that nothing can run on, so that a machine without any can show which of them
// a command takes.

#include <cstdio>

namespace {

unsigned number_of(void* device) {
  return static_cast<unsigned>(*static_cast<char*>(device));
}

char devices[] = {0, 1};

} // namespace

extern "C" {

struct fake_memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &devices[index];
  return index < 2 ? 0 : 2;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "Pretended GPU %u", number_of(device));
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%ueee", number_of(device));
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
int nvmlDeviceGetMinorNumber(void* device, unsigned* minor) {
  *minor = number_of(device);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, fake_memory* memory) {
  *memory = {1ull << 34, 1ull << 34, 0};
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned*) {
  return 1;
}
int nvmlDeviceGetTemperature(void*, int, unsigned*) {
  return 1;
}
int nvmlDeviceGetPowerUsage(void*, unsigned*) {
  return 1;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long*) {
  return 1;
}
// An H100's: 3.35 TB/s, 66.9 Tflop/s, 132 multiprocessors.
int nvmlDeviceGetMaxClockInfo(void*, int which, unsigned* mhz) {
  *mhz = which == 2 ? 2619 : 1980;
  return 0;
}
int nvmlDeviceGetMemoryBusWidth(void*, unsigned* bits) {
  *bits = 5120;
  return 0;
}
int nvmlDeviceGetNumGpuCores(void*, unsigned* cores) {
  *cores = 16896;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "0.0");
  return 0;
}
}

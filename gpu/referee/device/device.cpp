#include "gpu/referee/device/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "gpu/cuda/amd_devices.hpp"
#include "gpu/cuda/runtime_compiler.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/kernels_text.hpp"

namespace kernelmill {

namespace {

constexpr unsigned block_size = 256;
constexpr unsigned blocks_per_multiprocessor = 16;
constexpr int rousing_flushes = 16;
constexpr size_t most_amd_cache = size_t{256} << 20; // MI300's

struct key_words {
  unsigned k[8];
};

key_words words_of(const content_key& key) {
  key_words result{};
  for (int i = 0; i < 4; ++i) {
    result.k[2 * i] = static_cast<unsigned>(key.words[i]);
    result.k[2 * i + 1] = static_cast<unsigned>(key.words[i] >> 32);
  }
  return result;
}

} // namespace

// -- device_memory ----------------------------------------------------------------------------

device_memory::device_memory(const cuda::driver& cuda, size_t bytes) : cuda_(&cuda), bytes_(bytes) {
  if (int code = cuda.allocate(&address_, std::max<size_t>(bytes, 256)); code != 0) {
    cuda_ = nullptr;
    throw device_failure{
        fmt::format("failed to allocate {} MiB of the GPU: {}", bytes >> 20, cuda.name_of(code))};
  }
}

device_memory::~device_memory() {
  if (cuda_ != nullptr) (void)cuda_->free(address_);
}

// -- device -----------------------------------------------------------------------------------

expected<std::unique_ptr<device>> device::open(cuda::gpu_api api, std::string architecture) {
  auto opened = cuda::open_driver(api);
  KM_TRY(opened);
  std::unique_ptr<device> result{new device};
  result->cuda_ = *opened;
  result->architecture_ = std::move(architecture);
  try {
    KM_TRY(result->start());
  } catch (const device_failure& e) {
    return infrastructure_error("cuda_failed", e.what(), "`kernelmill doctor` shows the GPUs");
  }
  return result;
}

void device::check(const char* what, cuda::result code) const {
  if (code != 0) throw device_failure{fmt::format("failed to {}: {}", what, cuda_->name_of(code))};
}

expected<void> device::start() {
  cuda::context context = nullptr;
  check("start the driver", cuda_->init(0));
  check("make a context", cuda_->primary_retain(&context, 0));
  check("use a context", cuda_->set_current(context));
  learn_limits();
  find_monitor();
  if (auto ok = compile_kernels(); !ok) return ok;
  void* word = nullptr;
  check("make a word for the GPU", cuda_->host_allocate(&word, 4096, cuda::host_mapped));
  told_ = static_cast<volatile uint32_t*>(word);
  *told_ = 0;
  check("find a word on the GPU", cuda_->host_pointer(&told_there_, word, 0));
  audit_ = device_memory{*cuda_, sizeof(device_audit)};
  flushed_ = device_memory{*cuda_, 2 * cache_bytes_};
  check("clear what is read to flush the cache",
        cuda_->fill_words(flushed_.address(), 0, flushed_.bytes() / 4, nullptr));
  return {};
}

void device::learn_limits() {
  auto attribute = [&](int which) {
    int value = 0;
    check("ask the GPU", cuda_->device_attribute(&value, which, 0));
    return value;
  };
  char name[96] = {};
  check("ask the GPU", cuda_->device_name(name, sizeof name - 1, 0));
  int version = 0;
  check("ask the driver", cuda_->driver_version(&version));
  bool amd = cuda_->api == cuda::gpu_api::hip;
  description_ =
      amd ? fmt::format("{}, HIP {}.{}", name, version / 10'000'000, version / 100'000 % 100)
          : fmt::format("{}, CUDA {}.{}", name, version / 1000, version % 1000 / 10);
  if (!amd)
    architecture_ =
        fmt::format("sm_{}{}", attribute(cuda::attribute_major), attribute(cuda::attribute_minor));
  multiprocessors_ = attribute(cuda::attribute_multiprocessors);
  cache_bytes_ = static_cast<size_t>(attribute(cuda::attribute_l2_bytes));
  // HIP does not tell of the cache behind that of the second level.
  if (amd) cache_bytes_ = std::max(cache_bytes_, most_amd_cache);
  // Two transfers a clock; 128 multiply-adds a clock and multiprocessor.
  memory_rate_ = 2e3 * attribute(cuda::attribute_memory_clock_khz) *
                 (attribute(cuda::attribute_memory_bus_bits) / 8.0);
  auto clock_khz = attribute(cuda::attribute_clock_khz);
  flops_ = 256e3 * multiprocessors_ * clock_khz;
  rousing_ = rousing{static_cast<unsigned>(clock_khz / 1000)};
}

// CUDA_VISIBLE_DEVICES names the card by its uuid.
void device::find_monitor() {
  bool amd = cuda_->api == cuda::gpu_api::hip;
  const char* visible = std::getenv(amd ? "ROCR_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return;
  uuid_ = visible;
  if (amd) {
    for (const auto& x : cuda::amd_gpus())
      if (x.uuid == uuid_) amd_ = x;
    return;
  }
  auto opened = cuda::gpu_monitor::open();
  if (!opened) return;
  const auto& all = opened->gpus();
  auto ours =
      std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.uuid == visible; });
  if (ours == all.end()) return;
  monitored_ = static_cast<unsigned>(ours - all.begin());
  monitor_ = std::move(*opened);
}

std::optional<cuda::gpu_state> device::state() const {
  if (amd_) return cuda::amd_state(*amd_);
  if (!monitor_) return std::nullopt;
  return monitor_->state(monitored_);
}

expected<void> device::compile_kernels() {
  auto compiled = cuda::compile_device_code(device_kernels_text, "kernels.cu", architecture_);
  KM_TRY(compiled);
  if (!compiled->ok)
    return infrastructure_error("nvrtc_failed",
                                "failed to build the referee's kernels: " + compiled->log);
  kernels_ = std::move(compiled->cubin);
  check("load the referee's kernels", cuda_->module_load(&module_, kernels_.data()));
  return {};
}

void device::launch_kernel(const char* kernel, unsigned sets, uint64_t n, void** arguments) {
  if (n == 0 || sets == 0) return;
  cuda::function function = nullptr;
  check("find a kernel", cuda_->module_function(&function, module_, kernel));
  auto most = std::max<uint64_t>(
      static_cast<uint64_t>(multiprocessors_) * blocks_per_multiprocessor / sets, 1);
  auto blocks = static_cast<unsigned>(std::min((n + block_size - 1) / block_size, most));
  check(kernel,
        cuda_->launch(function, blocks, sets, 1, block_size, 1, 1, 0, nullptr, arguments, nullptr));
}

void device::fill(const tensor_sets& x, dtype type, const content_how& how,
                  const content_key& row) {
  launch(type == dtype::f32 ? "fill_f32" : "fill_i32", x.sets, x.count, x.first, x.count, x.stride,
         x.number, how, words_of(row));
}

void device::verify(const tensor_sets& x, dtype type, const content_how& how,
                    const content_key& row) {
  launch(type == dtype::f32 ? "verify_f32" : "verify_i32", x.sets, x.count, x.first, x.count,
         x.stride, x.number, how, words_of(row), audit_address());
}

void device::fill_words(const tensor_sets& x, uint32_t pattern) {
  launch("fill_words", x.sets, x.count, x.first, x.count, x.stride, pattern);
}

void device::unpin_cache() const {
  (void)cuda_->reset_persisting_l2(); // cards without that feature have nothing to take back
}

void device::push_out_cache(size_t left_to_write) {
  launch("read_words", 1, flushed_.bytes() / 16, flushed_.address(), flushed_.bytes() / 16);
  if (left_to_write >= 4)
    check("leave lines to be written back",
          cuda_->fill_words(flushed_.address(), 0, left_to_write / 4, nullptr));
}

void device::open_gate(cuda::device_pointer gate, uint32_t number) {
  launch("open_gate", 1, 1, told_there_, ++release_, gate, number);
}

void device::rouse() {
  auto work = [this] {
    for (int i = 0; i < rousing_flushes; ++i) push_out_cache();
    synchronize();
  };
  auto clock = [this]() -> std::optional<unsigned> {
    auto now = state();
    if (!now) return std::nullopt;
    return now->clock_mhz;
  };
  rousing_.rouse(work, clock, now_seconds);
}

device::memory_state device::memory() const {
  memory_state result;
  check("ask for free memory", cuda_->memory_info(&result.free, &result.total));
  return result;
}

bool device::crowded() const {
  auto now = memory();
  return now.free < now.total / 2; // a candidate, and a problem of the torch lane, need theirs
}

void device::begin_audit() {
  const device_audit fresh;
  check("start an audit", cuda_->copy_to_device(audit_.address(), &fresh, sizeof fresh));
}

device_audit device::end_audit() {
  synchronize();
  device_audit result;
  check("read an audit", cuda_->copy_to_host(&result, audit_.address(), sizeof result));
  return result;
}

} // namespace kernelmill

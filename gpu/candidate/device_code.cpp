#include "gpu/candidate/device_code.hpp"

#include <algorithm>
#include <cstdio>

#include <sys/mman.h>

namespace kernelmill {

namespace {

constexpr uint32_t usual_shared_bytes = 48u << 10; // more must be asked for
constexpr size_t alignment = 256;                  // of scratch
constexpr int launch_misfit = -1;                  // no error of the driver

} // namespace

int device_code::check(const char* what, int code) {
  if (code != 0)
    std::snprintf(problem_, sizeof problem_, "%s (%s)", what, cuda_.name_of(code).c_str());
  return code;
}

bool device_code::open(int descriptor) {
  void* at = ::mmap(nullptr, program_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return false;
  program_ = static_cast<device_program*>(at);
  return check("make a stream", cuda_.stream_create(&stream_, cuda::stream_non_blocking)) == 0;
}

void device_code::forget() {
  for (auto& x : scratch_) {
    if (x.mapped) (void)cuda_.memory_unmap(x.base, x.capacity);
    if (x.base != 0) (void)cuda_.address_free(x.base, x.capacity + x.unit);
    if (x.handle != 0) (void)cuda_.memory_release(x.handle);
    x = {};
  }
  if (module_ != nullptr) (void)cuda_.module_unload(module_);
  module_ = nullptr;
}

int device_code::load(const char*& missing) {
  missing = nullptr;
  forget();
  auto* image = reinterpret_cast<const char*>(program_) + program_cubin_at;
  if (int code = check("load the device code", cuda_.module_load(&module_, image)); code != 0)
    return code;
  for (uint32_t i = 0; i < program_->launches; ++i) {
    const auto& x = program_->plan[i];
    int code = cuda_.module_function(&kernels_[i], module_, x.kernel);
    if (code != 0) missing = x.kernel;
    if (code != 0) return check("find a kernel", code);
    if (code = check_parameters(x, kernels_[i]); code != 0) return code;
  }
  return take_scratch();
}

// The driver copies as many bytes as the kernel declares, whatever it is given.
int device_code::check_parameters(const program_launch& x, cuda::function kernel) {
  if (cuda_.function_parameter == nullptr) return 0;
  size_t offset = 0;
  size_t size = 0;
  uint32_t count = 0;
  while (cuda_.function_parameter(kernel, count, &offset, &size) == 0) {
    bool pointer = count < x.arguments && x.list[count].kind != program_argument_kind::value;
    if (count < x.arguments && (size == 8 || (size == 4 && !pointer))) {
      ++count;
      continue;
    }
    if (count < x.arguments)
      std::snprintf(problem_, sizeof problem_, "parameter %u of %s has %zu bytes, %s", count + 1,
                    x.kernel, size, pointer ? "not those of a pointer" : "not those of an integer");
    else
      std::snprintf(problem_, sizeof problem_, "%s has more parameters than its launch line: %u",
                    x.kernel, x.arguments);
    return launch_misfit;
  }
  if (count == x.arguments) return 0;
  std::snprintf(problem_, sizeof problem_, "%s has %u parameters, its launch line has %u", x.kernel,
                count, x.arguments);
  return launch_misfit;
}

int device_code::take_scratch() {
  for (uint32_t i = 0; i < program_->scratch_buffers; ++i)
    if (int code = take_scratch(std::max<size_t>(program_->scratch_bytes[i], 1), scratch_[i]);
        code != 0)
      return check("allocate scratch memory", code);
  return 0;
}

// A buffer ends where the mapping ends, and behind it nothing is mapped: who goes too far is told.
int device_code::take_scratch(size_t bytes, scratch_memory& x) {
  const cuda::allocation_properties how;
  const cuda::access_description access;
  int code = cuda_.granularity(&x.unit, &how, cuda::granularity_minimum);
  if (code != 0) return code;
  x.capacity = (bytes + x.unit - 1) / x.unit * x.unit;
  if (code = cuda_.memory_create(&x.handle, x.capacity, &how, 0); code != 0) return code;
  code = cuda_.address_reserve(&x.base, x.capacity + x.unit, x.unit, 0, 0);
  if (code == 0) code = cuda_.memory_map(x.base, x.capacity, 0, x.handle, 0);
  x.mapped = code == 0;
  if (code == 0) code = cuda_.set_access(x.base, x.capacity, &access, 1);
  x.begin = x.base + x.capacity - (bytes + alignment - 1) / alignment * alignment;
  return code;
}

int device_code::launch(char* const* bases, const int64_t* offsets) {
  for (uint32_t i = 0; i < program_->launches; ++i) {
    auto& x = program_->plan[i];
    int64_t values[max_arguments] = {};
    void* pointers[max_arguments];
    for (uint32_t k = 0; k < max_arguments; ++k) pointers[k] = &values[k];
    for (uint32_t k = 0; k < x.arguments; ++k) {
      const auto& from = x.list[k];
      switch (from.kind) {
        case program_argument_kind::tensor:
          values[k] = reinterpret_cast<int64_t>(bases[from.index]) + offsets[from.index];
          break;
        case program_argument_kind::scratch:
          values[k] = static_cast<int64_t>(scratch_[from.index].begin);
          break;
        case program_argument_kind::value: values[k] = from.value;
      }
    }
    if (x.shared > usual_shared_bytes)
      (void)cuda_.function_set(kernels_[i], cuda::function_max_dynamic_shared,
                               static_cast<int>(x.shared));
    int code = cuda_.launch(kernels_[i], x.grid[0], x.grid[1], x.grid[2], x.block[0], x.block[1],
                            x.block[2], x.shared, stream_, pointers, nullptr);
    if (code == 0) continue;
    std::snprintf(problem_, sizeof problem_,
                  "launch %s<<<dim3(%u, %u, %u), dim3(%u, %u, %u), %u>>> (%s)", x.kernel, x.grid[0],
                  x.grid[1], x.grid[2], x.block[0], x.block[1], x.block[2], x.shared,
                  cuda_.name_of(code).c_str());
    return code;
  }
  return 0;
}

int device_code::synchronize() {
  return check("finish a call", cuda_.stream_synchronize(stream_));
}

} // namespace kernelmill

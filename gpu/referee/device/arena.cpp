#include "gpu/referee/device/arena.hpp"

#include <algorithm>

namespace kernelmill {

namespace {

constexpr size_t guard = 256; // bytes on either side; also the alignment of tensors
constexpr unsigned char guard_byte = 0xc3;
constexpr size_t most_bytes = size_t{3} << 30; // of one arena
constexpr unsigned most_sets = 49;             // one more than three short rows
constexpr unsigned fewest_sets = 4;
constexpr double row_seconds = 5e-4;
constexpr double call_seconds = 5e-6; // of the shortest call worth timing
constexpr double usual_rate = 2e12;   // bytes a second, for a guess

size_t round_up(size_t x, size_t unit) {
  return (x + unit - 1) / unit * unit;
}

size_t stride_of(size_t bytes) {
  return round_up(bytes, guard) + guard;
}

} // namespace

device_arena::device_arena(device& gpu, const task& x)
    : gpu_(gpu), task_(x), tensors_(x.arguments.size()) {
  double bytes = working_set(x, x.timed);
  auto wanted = static_cast<unsigned>(row_seconds / (bytes / usual_rate + call_seconds));
  auto fitting = static_cast<unsigned>(most_bytes / static_cast<size_t>(bytes + 1));
  timed_sets_ = std::clamp((std::min(wanted, fitting) - 1) / 3 * 3 + 1, fewest_sets, most_sets);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (x.arguments[i].role == argument_role::scalar) continue;
    tensors_[i].output = is_output(x.arguments[i]);
    allocate(tensors_[i], std::max(stride_of(capacity_of(x, i)) + guard,
                                   stride_of(tensor_bytes(x, i, x.timed)) * timed_sets_ + guard));
  }
}

void device_arena::allocate(tensor& x, size_t bytes) {
  const auto& cuda = gpu_.cuda();
  const cuda::allocation_properties how;
  size_t unit = 0;
  gpu_.check("learn the unit of memory", cuda.granularity(&unit, &how, cuda::granularity_minimum));
  x.capacity = round_up(bytes, unit);
  gpu_.check("allocate a buffer", cuda.memory_create(&x.handle, x.capacity, &how, 0));
  int exported = -1;
  gpu_.check("export a buffer", cuda.memory_export(&exported, x.handle, cuda::posix_descriptor, 0));
  x.exported = descriptor{exported};
  gpu_.check("reserve addresses", cuda.address_reserve(&x.base, x.capacity, unit, 0, 0));
  gpu_.check("map a buffer", cuda.memory_map(x.base, x.capacity, 0, x.handle, 0));
  const cuda::access_description access;
  gpu_.check("open a buffer", cuda.set_access(x.base, x.capacity, &access, 1));
}

device_arena::~device_arena() {
  const auto& cuda = gpu_.cuda();
  for (auto& x : tensors_) {
    if (x.base != 0) {
      (void)cuda.memory_unmap(x.base, x.capacity);
      (void)cuda.address_free(x.base, x.capacity);
    }
    if (x.handle != 0) (void)cuda.memory_release(x.handle);
  }
}

std::vector<shared_memory> device_arena::parameters() const {
  std::vector<shared_memory> result;
  for (const auto& x : tensors_)
    result.push_back(x.base == 0 ? shared_memory{}
                                 : shared_memory{x.exported.get(), x.capacity, x.output});
  return result;
}

void device_arena::select(const task_case& which, unsigned sets) {
  sets_ = sets;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].bytes = tensor_bytes(task_, i, which);
    tensors_[i].stride = stride_of(tensors_[i].bytes);
  }
  for_each_guard("set_bytes", false);
}

// The last set ends where the mapping ends: a write far beyond it meets addresses that are not.
size_t device_arena::offset(size_t argument, unsigned set) const {
  const auto& x = tensors_[argument];
  return x.capacity - x.stride * (sets_ - set);
}

cuda::device_pointer device_arena::address(size_t argument, unsigned set) const {
  return tensors_[argument].base + offset(argument, set);
}

void device_arena::for_each_guard(const char* kernel, bool auditing) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& x = tensors_[i];
    if (!x.output) continue;
    auto visit = [&](cuda::device_pointer at, uint64_t bytes) {
      if (auditing)
        gpu_.launch(kernel, bytes, at, bytes, guard_byte, gpu_.audit_address());
      else
        gpu_.launch(kernel, bytes, at, bytes, guard_byte);
    };
    visit(address(i, 0) - guard, guard);
    for (unsigned set = 0; set < sets_; ++set) visit(address(i, set) + x.bytes, x.stride - x.bytes);
  }
}

void device_arena::check_guards() {
  for_each_guard("check_bytes", true);
}

void device_arena::poison_outputs() {
  for (size_t i = 0; i < tensors_.size(); ++i)
    for (unsigned set = 0; tensors_[i].output && set < sets_; ++set)
      gpu_.poison(address(i, set), count(i),
                  task_.arguments[i].type == dtype::f32 ? poison_f32 : poison_i32);
}

} // namespace kernelmill

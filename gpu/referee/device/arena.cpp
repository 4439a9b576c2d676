#include "gpu/referee/device/arena.hpp"

#include <algorithm>

namespace kernelmill {

namespace {

constexpr size_t guard = 1024; // bytes on either side; also the alignment of small tensors
// Large tensors lie where cudaMalloc puts them, at the beginning of a page: elsewhere a kernel of
// the corpus is 7 % slower (at multiples of 512 bytes) or 5 % (3072), and others are faster (H200).
constexpr size_t large = 8 << 20;
constexpr size_t page = 2 << 20;
constexpr unsigned char device_guard_byte = 0xc3;
constexpr size_t memory_share = 32;        // of the card's memory: what one arena may take at most
constexpr unsigned most_sets = 500;        // of a row; device_program.hpp has room for them
constexpr unsigned fewest_timed_sets = 4;  // of them one at least stays unasked
constexpr double usual_row_seconds = 3e-3; // or more takes a row of calls
constexpr double shortest_call_seconds = 5e-6; // of the shortest call worth timing
constexpr double usual_rate = 3e12;            // bytes a second, for a guess

size_t round_up(size_t x, size_t unit) {
  return (x + unit - 1) / unit * unit;
}

size_t stride_of(size_t bytes) {
  return round_up(bytes + guard, bytes >= large ? page : guard);
}

} // namespace

device_arena::device_arena(device& gpu, const task& x)
    : gpu_(gpu), task_(x), tensors_(x.arguments.size()) {
  double bytes = working_set(x, x.timed);
  auto wanted =
      static_cast<unsigned>(usual_row_seconds / (bytes / usual_rate + shortest_call_seconds));
  auto fitting = static_cast<unsigned>(std::min<size_t>(
      gpu.memory().total / memory_share / static_cast<size_t>(bytes + 1), most_sets));
  timed_sets_ = std::clamp(std::min(wanted, fitting), fewest_timed_sets, most_sets);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (x.arguments[i].role == argument_role::scalar) continue;
    tensors_[i].output = is_output(x.arguments[i]);
    allocate(tensors_[i],
             std::max(stride_of(capacity_of(x, i)) + guard,
                      stride_of(tensor_bytes(x, i, x.timed)) * (timed_sets_ + 1) + guard));
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

size_t device_arena::left_to_write(size_t cache, unsigned sets) const {
  size_t outputs = 0;
  size_t all = 0;
  for (const auto& x : tensors_) {
    all += x.bytes;
    outputs += x.output ? x.bytes : 0;
  }
  auto share = static_cast<double>(outputs) / static_cast<double>(std::max<size_t>(all, 1));
  return std::min(static_cast<size_t>(share * static_cast<double>(cache)), sets * outputs);
}

// Visits the guards before the first and behind every set of each output.
template <class Visit>
void device_arena::for_each_guard(Visit visit) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& x = tensors_[i];
    if (!x.output) continue;
    visit(1u, uint64_t{guard}, uint64_t{0}, address(i, 0) - guard);
    visit(sets_, uint64_t{x.stride - x.bytes}, uint64_t{x.stride}, address(i, 0) + x.bytes);
  }
}

void device_arena::select(const task_case& which, unsigned sets) {
  sets_ = sets;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].bytes = tensor_bytes(task_, i, which);
    tensors_[i].stride = stride_of(tensors_[i].bytes);
  }
  for_each_guard([&](unsigned count, uint64_t n, uint64_t stride, cuda::device_pointer at) {
    gpu_.launch("set_bytes", count, n, at, n, stride, device_guard_byte);
  });
}

size_t device_arena::bytes() const noexcept {
  size_t result = 0;
  for (const auto& x : tensors_) result += x.capacity;
  return result;
}

// The last set ends where the mapping ends: a write far beyond it meets addresses that are not.
size_t device_arena::offset(size_t argument, unsigned set) const {
  const auto& x = tensors_[argument];
  return x.capacity - x.stride * (sets_ - set);
}

cuda::device_pointer device_arena::address(size_t argument, unsigned set) const {
  return tensors_[argument].base + offset(argument, set);
}

tensor_sets device_arena::sets_of(size_t argument, unsigned first, unsigned count) const {
  return {address(argument, first), this->count(argument), tensors_[argument].stride / 4, first,
          count};
}

void device_arena::check_guards() {
  for_each_guard([&](unsigned count, uint64_t n, uint64_t stride, cuda::device_pointer at) {
    gpu_.launch("check_bytes", count, n, at, n, stride, device_guard_byte, gpu_.audit_address());
  });
}

void device_arena::poison_outputs(unsigned first, unsigned count) {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].output)
      gpu_.fill_words(sets_of(i, first, count),
                      task_.arguments[i].type == dtype::f32 ? poison_f32 : poison_i32);
}

} // namespace kernelmill

#include "gpu/referee/buffers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/candidate/protocol.hpp"

namespace kernelmill {

namespace {

constexpr std::byte guard_byte{0xc3};
constexpr size_t guard_checked = 4096; // bytes before the payload that are looked at
constexpr size_t most_places = 15;
constexpr size_t bytes_of_places = size_t{4} << 20;

tl::unexpected<error> failed(const char* what) {
  return infrastructure_error("shared_memory",
                              std::string{"failed to "} + what + ": " + std::strerror(errno),
                              "check free memory and the limits on open files");
}

expected<int> sealed_memfd(const char* name, size_t size) {
  int descriptor = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return failed("create a memfd");
  // Without the seal on shrinking, a candidate could cut the file and kill its referee by SIGBUS.
  if (::ftruncate(descriptor, static_cast<off_t>(size)) == 0 &&
      ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
    return descriptor;
  auto problem = failed("size a memfd");
  ::close(descriptor);
  return problem;
}

__attribute__((target("clflushopt"))) void flush_lines(const std::byte* from, const std::byte* to) {
  for (; from < to; from += 64) _mm_clflushopt(const_cast<std::byte*>(from));
  _mm_sfence();
}

void flush_lines_slowly(const std::byte* from, const std::byte* to) {
  for (; from < to; from += 64) _mm_clflush(from);
  _mm_mfence();
}

bool has_clflushopt() {
  unsigned a = 7, b = 0, c = 0, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (b >> 23 & 1) != 0;
}

} // namespace

// -- shared_buffer ----------------------------------------------------------------------------

expected<shared_buffer> shared_buffer::create(size_t bytes, bool writable_by_candidate) {
  size_t size = (bytes + 2 * buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  size_t place = (size + page_bytes - 1) / page_bytes * page_bytes;
  size_t places = std::clamp<size_t>(bytes_of_places / place, 1, most_places);
  places -= 1 - places % 2; // of an even number some would belong to one order of calls
  size = places * (place + page_bytes) - page_bytes;
  auto descriptor = sealed_memfd("kernelmill-tensor", size);
  KM_TRY(descriptor);
  shared_buffer result;
  result.descriptor_ = *descriptor;
  // Populated, so that no candidate is charged for its memory.
  auto* at =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, *descriptor, 0);
  if (at == MAP_FAILED) return failed("map a tensor");
  result.base_ = static_cast<std::byte*>(at);
  result.size_ = size;
  result.place_bytes_ = place;
  result.places_ = static_cast<uint32_t>(places);
  // From here on new mappings and write(2) are refused; ours stays writable.
  int seals = F_SEAL_SEAL | (writable_by_candidate ? 0 : F_SEAL_FUTURE_WRITE);
  if (::fcntl(*descriptor, F_ADD_SEALS, seals) != 0) return failed("seal a tensor");
  result.place(bytes);
  return result;
}

shared_buffer::shared_buffer(shared_buffer&& x) noexcept {
  *this = std::move(x);
}

shared_buffer& shared_buffer::operator=(shared_buffer&& x) noexcept {
  if (this == &x) return *this;
  release();
  descriptor_ = std::exchange(x.descriptor_, -1);
  base_ = std::exchange(x.base_, nullptr);
  size_ = std::exchange(x.size_, 0);
  place_bytes_ = x.place_bytes_;
  places_ = x.places_;
  place_ = x.place_;
  end_ = x.end_;
  offset_ = x.offset_;
  bytes_ = x.bytes_;
  return *this;
}

shared_buffer::~shared_buffer() {
  release();
}

void shared_buffer::release() noexcept {
  if (base_ != nullptr) ::munmap(base_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
  base_ = nullptr;
  descriptor_ = -1;
}

void shared_buffer::place(size_t bytes) {
  end_ = place_ * (place_bytes_ + page_bytes) + place_bytes_;
  offset_ = end_ - (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  bytes_ = bytes;
  size_t before = guard_before();
  std::fill_n(base_ + offset_ - before, before, guard_byte);
  std::fill(base_ + offset_ + bytes_, base_ + end_, guard_byte);
}

size_t shared_buffer::guard_before() const noexcept {
  return std::min(offset_ - (end_ - place_bytes_), guard_checked);
}

void shared_buffer::poison(uint32_t pattern) noexcept {
  std::fill_n(reinterpret_cast<uint32_t*>(payload()), bytes_ / sizeof pattern, pattern);
}

void shared_buffer::flush() const noexcept {
  static const bool fast = has_clflushopt();
  fast ? flush_lines(payload(), base_ + end_) : flush_lines_slowly(payload(), base_ + end_);
}

void shared_buffer::take(std::byte* into, uint64_t order) const noexcept {
  size_t blocks = (bytes_ + page_bytes - 1) / page_bytes;
  // A stride that shares no factor with the count visits each block once.
  size_t stride = order % blocks;
  auto gcd = [](size_t a, size_t b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a;
  };
  while (gcd(stride, blocks) != 1) stride = stride + 1 < blocks ? stride + 1 : 1;
  size_t block = (order >> 32) % blocks;
  for (size_t i = 0; i < blocks; ++i) {
    size_t start = block * page_bytes;
    std::memcpy(into + start, payload() + start, std::min(page_bytes, bytes_ - start));
    block = (block + stride) % blocks;
  }
}

std::optional<std::string> shared_buffer::damage() const {
  size_t before = guard_before();
  for (size_t i = 1; i <= before; ++i)
    if (base_[offset_ - i] != guard_byte) return std::to_string(i) + " bytes before its start";
  for (size_t i = offset_ + bytes_; i < end_; ++i)
    if (base_[i] != guard_byte)
      return std::to_string(i - offset_ - bytes_ + 1) + " bytes after its end";
  return std::nullopt;
}

// -- shared_page ------------------------------------------------------------------------------

expected<shared_page> shared_page::create(size_t bytes) {
  auto descriptor = sealed_memfd("kernelmill-control", bytes);
  KM_TRY(descriptor);
  shared_page result;
  result.descriptor_ = *descriptor;
  auto* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
  if (at == MAP_FAILED) return failed("map a control page");
  result.data_ = at;
  result.bytes_ = bytes;
  if (::fcntl(*descriptor, F_ADD_SEALS, F_SEAL_SEAL) != 0) return failed("seal a control page");
  return result;
}

shared_page::shared_page(shared_page&& x) noexcept
    : descriptor_(std::exchange(x.descriptor_, -1)), data_(std::exchange(x.data_, nullptr)),
      bytes_(x.bytes_) {}

shared_page& shared_page::operator=(shared_page&& x) noexcept {
  std::swap(descriptor_, x.descriptor_);
  std::swap(data_, x.data_);
  std::swap(bytes_, x.bytes_);
  return *this;
}

shared_page::~shared_page() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

} // namespace kernelmill

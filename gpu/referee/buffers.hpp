#pragma once

// One tensor shared with a candidate process: a memfd whose size nobody can change, mapped here
// for writing and there for reading only or for both. The payload lies at the end, aligned to 64
// bytes, so that a write beyond it meets at most 63 guard bytes and then a page that is not
// there; before it lie guard bytes, at least 64 of them. A memfd has several such places. Each
// timed call finds the tensor in another: in which pages of the machine's memory it lies changes a
// small kernel's time by up to a quarter, and would do so for a whole evaluation. Untimed calls
// find it where it was: a result that is kept by its address is then wrong.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "messages/error.hpp"

namespace kernelmill {

/// NaN as f32 (quiet, with a payload that no arithmetic gives), and a wild value as i32.
inline constexpr uint32_t poison_f32 = 0x7fc5a5a5u;
inline constexpr uint32_t poison_i32 = 0xa5a5a5a5u;

/// Thread safety: none.
class shared_buffer {
public:
  /// Places for `bytes`: fifteen, or fewer, an odd number, that have at most 4 MiB. What is not
  /// writable can be mapped by its receiver for reading only.
  static expected<shared_buffer> create(size_t bytes, bool writable_by_candidate);

  shared_buffer(shared_buffer&&) noexcept;
  shared_buffer& operator=(shared_buffer&&) noexcept;
  ~shared_buffer();

  int descriptor() const noexcept { return descriptor_; }
  size_t capacity() const noexcept { return place_bytes_; } ///< of a place, whole pages
  uint32_t places() const noexcept { return places_; }

  /// What place() is called with next comes to lie in another place.
  void move_on() noexcept { place_ = (place_ + 1) % places_; }

  /// Sets the payload's size for the next calls and renews all guard bytes.
  /// REQUIRES: bytes is at most what create() was given.
  void place(size_t bytes);

  std::byte* payload() const noexcept { return base_ + offset_; }
  size_t bytes() const noexcept { return bytes_; }
  size_t offset() const noexcept { return offset_; } ///< of the payload in the memfd

  /// Fills the payload with a 32-bit pattern.
  void poison(uint32_t pattern) noexcept;

  /// Evicts the payload from every cache of every core.
  void flush() const noexcept;

  /// Copies the payload out, its 4 KiB blocks in an order drawn from `order`, so that nobody who
  /// still writes can know which part is taken last.
  void take(std::byte* into, uint64_t order) const noexcept;

  /// Says where a guard byte has changed: "3 bytes after its end", or nothing.
  std::optional<std::string> damage() const;

private:
  shared_buffer() = default;
  void release() noexcept;
  size_t guard_before() const noexcept; // bytes

  int descriptor_ = -1;
  std::byte* base_ = nullptr;
  size_t size_ = 0; // of the memfd
  size_t place_bytes_ = 0;
  uint32_t places_ = 1;
  uint32_t place_ = 0;
  size_t end_ = 0; // of the place
  size_t offset_ = 0;
  size_t bytes_ = 0;
};

/// Pages that both sides write; the same seals on their size.
class shared_page {
public:
  static expected<shared_page> create(size_t bytes);
  shared_page(shared_page&&) noexcept;
  shared_page& operator=(shared_page&&) noexcept;
  ~shared_page();

  int descriptor() const noexcept { return descriptor_; }
  void* data() const noexcept { return data_; }

private:
  shared_page() = default;
  int descriptor_ = -1;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

} // namespace kernelmill

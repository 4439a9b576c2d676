#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/candidate/protocol.hpp"
#include "gpu/referee/buffers.hpp"

using namespace kernelmill;

namespace buffers_test {

TEST(buffers, the_payload_ends_at_the_end_of_the_last_page) {
  auto x = shared_buffer::create(100, true).value();
  EXPECT_EQ(x.bytes(), 100u);
  EXPECT_EQ(x.capacity(), page_bytes);
  EXPECT_EQ(x.offset(), page_bytes - 128);
  EXPECT_EQ(x.offset() % buffer_alignment, 0u);
}

TEST(buffers, there_are_always_guard_bytes_in_front) {
  for (size_t bytes : {size_t{4}, page_bytes - 64, page_bytes - 4, page_bytes, 3 * page_bytes})
    EXPECT_GE(shared_buffer::create(bytes, true).value().offset(), buffer_alignment) << bytes;
}

TEST(buffers, a_smaller_payload_moves_to_the_end) {
  auto x = shared_buffer::create(4096, true).value();
  x.place(8);
  EXPECT_EQ(x.offset(), x.capacity() - 64);
  EXPECT_FALSE(x.damage());
}

TEST(buffers, damage_is_told_on_both_sides) {
  auto x = shared_buffer::create(100, true).value();
  x.payload()[100] = std::byte{1};
  EXPECT_EQ(x.damage(), "1 bytes after its end");
  x.place(100);
  EXPECT_FALSE(x.damage());
  x.payload()[-1] = std::byte{1};
  EXPECT_EQ(x.damage(), "1 bytes before its start");
}

TEST(buffers, what_is_not_writable_cannot_be_mapped_or_written) {
  auto x = shared_buffer::create(100, false).value();
  EXPECT_EQ(::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, x.descriptor(), 0),
            MAP_FAILED);
  EXPECT_LT(::pwrite(x.descriptor(), "a", 1, 0), 0);
  auto* reading = ::mmap(nullptr, page_bytes, PROT_READ, MAP_SHARED, x.descriptor(), 0);
  ASSERT_NE(reading, MAP_FAILED);
  EXPECT_NE(::mprotect(reading, page_bytes, PROT_READ | PROT_WRITE), 0);
  x.payload()[0] = std::byte{7}; // ours stays writable
  EXPECT_EQ(static_cast<std::byte*>(reading)[x.offset()], std::byte{7});
  ::munmap(reading, page_bytes);
}

TEST(buffers, their_size_cannot_be_changed) {
  auto x = shared_buffer::create(100, true).value();
  EXPECT_NE(::ftruncate(x.descriptor(), 0), 0);
  EXPECT_NE(::ftruncate(x.descriptor(), 1 << 20), 0);
  auto page = shared_page::create(page_bytes).value();
  EXPECT_NE(::ftruncate(page.descriptor(), 0), 0);
}

TEST(buffers, taking_copies_every_block_in_any_order) {
  for (size_t bytes : {size_t{4}, size_t{4096}, size_t{4100}, size_t{40000}}) {
    auto x = shared_buffer::create(bytes, true).value();
    for (size_t i = 0; i < bytes; ++i) x.payload()[i] = static_cast<std::byte>(i * 7 + i / 256);
    for (uint64_t order : {UINT64_C(0), UINT64_C(1), UINT64_C(0x123456789abcdef), ~UINT64_C(0)}) {
      std::vector<std::byte> copy(bytes);
      x.take(copy.data(), order);
      EXPECT_EQ(std::memcmp(copy.data(), x.payload(), bytes), 0) << bytes << " " << order;
    }
  }
}

TEST(buffers, poison_fills_the_payload_only) {
  auto x = shared_buffer::create(100, true).value();
  x.poison(poison_f32);
  uint32_t last = 0;
  std::memcpy(&last, x.payload() + 96, 4);
  EXPECT_EQ(last, poison_f32);
  EXPECT_FALSE(x.damage());
  x.flush();
}

TEST(buffers, a_tensor_that_moves_on_lies_elsewhere) {
  auto x = shared_buffer::create(100, true).value();
  std::set<size_t> offsets;
  for (uint32_t i = 0; i < x.places(); ++i) {
    x.move_on();
    x.place(100);
    x.poison(poison_f32);
    offsets.insert(x.offset());
    EXPECT_FALSE(x.damage());
  }
  EXPECT_EQ(x.places(), 15u);
  EXPECT_EQ(offsets.size(), x.places());
  // No process may access the page between two places.
  for (size_t offset : offsets) EXPECT_LT(offset % (x.capacity() + page_bytes), x.capacity());
  for (size_t bytes : {300 << 10, 500 << 10, 1 << 20, 2 << 20, 8 << 20})
    EXPECT_EQ(shared_buffer::create(bytes, true).value().places() % 2, 1u) << bytes;
  EXPECT_EQ(shared_buffer::create(8 << 20, true).value().places(), 1u);
}

} // namespace buffers_test

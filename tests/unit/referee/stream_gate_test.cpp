// The gate before launches, with functions of our own in place of the driver's.

#include <chrono>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "gpu/candidate/protocol.hpp"
#include "gpu/candidate/stream_gate.hpp"

using namespace kernelmill;

namespace stream_gate_test {

std::atomic<uint32_t>* word = nullptr;
uint32_t waited_for = 0;
bool has_memory = true;

int allocate(void** into, size_t bytes, unsigned) {
  *into = has_memory ? std::aligned_alloc(page_bytes, bytes) : nullptr;
  return has_memory ? 0 : 2;
}

int wait_for(cuda::stream, cuda::device_pointer at, uint32_t value, unsigned) {
  word = reinterpret_cast<std::atomic<uint32_t>*>(at);
  waited_for = value;
  return 0;
}

cuda::driver our_driver() {
  cuda::driver result;
  result.host_allocate = allocate;
  result.wait_value = wait_for;
  return result;
}

// Lives on, as its thread does.
struct closed_gate {
  cuda::driver driver = our_driver();
  std::atomic<uint32_t> opened{0};
  stream_gate gate{driver, &opened};
};

void open_from_outside(closed_gate& x, uint32_t number) {
  x.opened.store(number);
  futex_wake(&x.opened);
}

bool becomes(uint32_t number) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (word->load() != number && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  return word->load() == number;
}

TEST(stream_gate, opens_by_its_own_process_and_from_outside) {
  auto& x = *new closed_gate;
  x.gate.close(1);
  EXPECT_EQ(waited_for, 1u);
  EXPECT_LT(word->load(), 1u);
  x.gate.open(1);
  EXPECT_EQ(word->load(), 1u);
  x.gate.close(2);
  EXPECT_LT(word->load(), waited_for);
  open_from_outside(x, 2);
  EXPECT_TRUE(becomes(2));
}

TEST(stream_gate, is_not_closed_again_by_a_late_word_from_outside) {
  auto& x = *new closed_gate;
  x.gate.close(1);
  x.gate.open(5);
  open_from_outside(x, 3);
  open_from_outside(x, 6);
  EXPECT_TRUE(becomes(6));
  x.gate.open(2);
  EXPECT_EQ(word->load(), 6u);
}

TEST(stream_gate, nothing_waits_where_there_is_no_memory_for_it) {
  auto& x = *new closed_gate;
  has_memory = false;
  waited_for = 0;
  x.gate.close(1);
  x.gate.open(1);
  EXPECT_EQ(waited_for, 0u);
  has_memory = true;
}

} // namespace stream_gate_test

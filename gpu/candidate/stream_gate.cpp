#include "gpu/candidate/stream_gate.hpp"

#include <new>

#include <pthread.h>

#include "gpu/candidate/protocol.hpp"

namespace kernelmill {

bool stream_gate::make() {
  if (word_ != nullptr) return true;
  void* room = nullptr;
  if (cuda_.host_allocate(&room, page_bytes, cuda::host_mapped) != 0) return false;
  auto* word = new (room) std::atomic<uint32_t>{opened_->load(std::memory_order_acquire)};
  word_ = word;
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, run, this) == 0) {
    ::pthread_detach(thread);
    return true;
  }
  word_ = nullptr; // nobody could open it
  return false;
}

void stream_gate::close(uint32_t number) {
  if (!make()) return;
  (void)cuda_.wait_value(nullptr, reinterpret_cast<uint64_t>(word_), number, cuda::wait_at_least);
}

// Never back: an order from the referee may come after this process has opened the next one.
void stream_gate::open(uint32_t number) noexcept {
  if (word_ == nullptr) return;
  uint32_t now = word_->load(std::memory_order_relaxed);
  while (now < number && !word_->compare_exchange_weak(now, number, std::memory_order_release)) {
  }
}

void stream_gate::follow() noexcept {
  for (;;) {
    uint32_t number = opened_->load(std::memory_order_acquire);
    open(number);
    futex_wait(opened_, number, 0);
  }
}

void* stream_gate::run(void* self) {
  static_cast<stream_gate*>(self)->follow();
  return nullptr;
}

} // namespace kernelmill

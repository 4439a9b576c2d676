#include "actors/lineage/record_follower.hpp"

#include <utility>

namespace kernelmill {

namespace {

template <class F>
void guarded(const F& f) {
  try {
    f();
  } catch (...) { // kj::Exception is none of std::exception's
    // nop
  }
}

} // namespace

record_follower::record_follower(listener tell, std::function<void()> rest)
    : tell_(std::move(tell)), rest_(std::move(rest)), thread_([this] { run(); }) {
  // nop
}

record_follower::~record_follower() {
  {
    std::lock_guard guard{mutex_};
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void record_follower::push(Message<wire::Record> record) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return waiting_.size() < most_waiting; });
  waiting_.push_back(std::move(record));
  lock.unlock();
  changed_.notify_all();
}

void record_follower::settle() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return waiting_.empty(); });
}

void record_follower::run() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    auto record = waiting_.front();
    bool last = waiting_.size() == 1;
    lock.unlock();
    guarded([&] { tell_(*record.open()); });
    // Before the record leaves the queue, which settle() waits for.
    if (last && rest_) guarded(rest_);
    lock.lock();
    waiting_.pop_front();
    changed_.notify_all();
  }
}

} // namespace kernelmill

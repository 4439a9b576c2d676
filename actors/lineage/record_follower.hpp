#pragma once

// Passes committed records to a listener on a thread of its own: an episode that waits for a commit
// does not wait for the lines of a journal, nor for what the listener reads to write them.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "messages/lineage.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// Thread safety: any number of threads.
class record_follower {
public:
  using listener = std::function<void(wire::Record::Reader)>;

  /// Calls `tell` for one record at a time, in the order of push(), and `rest` when all that was
  /// pushed is told, before settle() returns. A record that `tell` throws at is left out: what
  /// follows records is a projection of them.
  explicit record_follower(listener tell, std::function<void()> rest = {});

  /// Returns when all that was pushed is told.
  ~record_follower();

  record_follower(const record_follower&) = delete;
  record_follower& operator=(const record_follower&) = delete;

  /// Waits while `most_waiting` records are pending, so that a slow listener slows commits down
  /// before it fills the memory.
  void push(Message<wire::Record> record);

  /// Returns when all that was pushed before is told.
  void settle();

  static constexpr size_t most_waiting = 4096;

private:
  void run();

  listener tell_;
  std::function<void()> rest_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message<wire::Record>> waiting_; // the front one is being told
  bool ending_ = false;
  std::thread thread_; // last: it uses the others
};

} // namespace kernelmill

#pragma once

// Candidate processes that are up before there is a candidate: starting one behind all the walls
// takes 15 ms, and 150 ms more with a context on a GPU, and nobody shall wait for that. Each is
// used once. On a GPU slot a thread starts them, and ends those that are done with, which takes
// the driver 60 ms, while the next candidate is judged.

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "gpu/referee/slot.hpp"

namespace kernelmill {

/// Thread safety: none.
class candidate_pool {
public:
  candidate_pool(sandbox& walls, candidate_options options, size_t size);
  ~candidate_pool();

  /// Returns a process that is up; starts one when there is none.
  expected<candidate_process> take();

  /// Starts what is missing, without waiting for it. Call it when nobody is being timed.
  void refill();

  /// Waits until nothing in the pool is still starting or ending, and starts and ends nothing until
  /// release(): contexts that come and go make rows on a GPU longer.
  void settle();

  /// Timing is over.
  void release();

  /// Releases when it goes, whatever ended the timing.
  struct hold {
    candidate_pool& pool;
    ~hold() { pool.release(); }
  };

  /// Ends a slot that is done with. The future is ready when its process is gone, and with it
  /// everything that it may still have had running on a GPU.
  std::shared_future<void> retire(std::unique_ptr<slot> x);

  /// Waits until all that were retired are gone, at most 10 s. False when some are still there.
  bool await_retired() const;

  unsigned threads() const noexcept { return options_.threads; }

private:
  bool on_gpu() const noexcept { return !options_.gpu_node.empty(); }
  void work();

  struct retired {
    std::unique_ptr<slot> process;
    std::promise<void> gone;
  };

  sandbox& walls_;
  candidate_options options_;
  size_t size_;
  std::mutex mutex_; // guards the rest but the thread
  std::condition_variable changed_;
  std::deque<candidate_process> waiting_;
  std::deque<retired> retired_;
  std::shared_future<void> latest_; // of the retired: they go in order
  bool ending_ = false;
  bool held_ = false; // nothing is started or ended
  bool busy_ = false; // the thread starts or ends something
  bool filling_ =
      true; // until it is full again: several contexts at once take less than one by one
  std::thread worker_;
};

} // namespace kernelmill

#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>

namespace kernelmill {

/// Lets readers in together and a change of the map in alone. A thread that reads may read again
/// inside; a waiting change does not hold it up, or it would wait for itself.
/// Thread safety: any number of threads.
class read_gate {
public:
  void enter();
  void leave();

  /// Runs `change` when no reader is inside. Returns false when this thread itself reads.
  bool alone(const std::function<void()>& change);

private:
  std::mutex mutex_;
  std::condition_variable turned_;
  size_t readers_ = 0;
  bool changing_ = false;
};

} // namespace kernelmill

#pragma once

// Where a run leaves kernels that it has just verified, for a retriever to take up before its
// next query. Thread safe.

#include <mutex>
#include <utility>
#include <vector>

#include "retrieval/search/index.hpp"

namespace kernelmill {

class kernel_feed {
public:
  void push(verified_kernel x) {
    std::lock_guard lock{mutex_};
    waiting_.push_back(std::move(x));
  }

  std::vector<verified_kernel> take() {
    std::lock_guard lock{mutex_};
    return std::exchange(waiting_, {});
  }

private:
  std::mutex mutex_;
  std::vector<verified_kernel> waiting_;
};

} // namespace kernelmill

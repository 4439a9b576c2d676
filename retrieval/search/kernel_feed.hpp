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
  void push(kernel_example x) {
    std::lock_guard lock{mutex_};
    waiting_.push_back(std::move(x));
  }

  std::vector<kernel_example> take() {
    std::lock_guard lock{mutex_};
    return std::exchange(waiting_, {});
  }

private:
  std::mutex mutex_;
  std::vector<kernel_example> waiting_;
};

} // namespace kernelmill

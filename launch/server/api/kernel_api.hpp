#pragma once

// GET /v1/kernels: the best verified kernels of the runs below a folder, for a task or a family of
// operators, a shape and a GPU.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launch/analysis/library/staleness.hpp"
#include "launch/server/api/api_fields.hpp"
#include "launch/server/http/router.hpp"

namespace kernelmill::services {

/// Rows of schemas() and of operations().
std::vector<schema> kernel_schemas();
std::vector<operation> kernel_operations();

/// Reads runs on a thread of its own, since the server's must not wait. Thread-safe. Destroying it
/// ends the thread; what has not begun is answered 503.
class kernel_answers {
public:
  /// `root`: the folder of runs, read anew for each request. `today` is of the server's backend.
  kernel_answers(std::string root, library::conditions_today today);
  ~kernel_answers();

  /// Answers `to` later, or at once 429 when too many wait.
  void ask(http::request what, http::exchange_ptr to);

private:
  struct question {
    http::request what;
    http::exchange_ptr to;
  };

  void work();
  http::response answer_to(const http::request& what) const;

  const std::string root_;
  const library::conditions_today today_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<question> waiting_;
  bool ends_ = false;
  std::thread thread_; ///< last: it uses all of the others
};

} // namespace kernelmill::services

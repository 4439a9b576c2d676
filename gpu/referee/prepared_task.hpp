#pragma once

// A task that is ready to judge candidates: its reference loaded here, its baseline built and,
// once something is timed, running in a sandbox of its own. The baseline is trusted, so its
// process serves one candidate after the other; candidates get a process each.

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "gpu/referee/slot.hpp"
#include "gpu/referee/trusted_build.hpp"

namespace kernelmill {

/// Thread safety: none.
class prepared_task {
public:
  static expected<std::unique_ptr<prepared_task>> prepare(task x, trusted_builder& builder);
  ~prepared_task();

  const task& spec() const noexcept { return task_; }
  workload make_workload() const { return workload{task_, reference_}; }
  const std::string& baseline_path() const noexcept { return baseline_path_; }

  std::optional<slot> baseline; ///< empty until started, and again when it has ended

private:
  explicit prepared_task(task x) : task_(std::move(x)) {}

  task task_;
  std::string baseline_path_;
  void* library_ = nullptr;
  reference_function reference_ = nullptr;
};

/// The few tasks that were used last.
/// Thread safety: none.
class prepared_tasks {
public:
  prepared_tasks(trusted_builder& builder, size_t limit) : builder_(builder), limit_(limit) {}

  /// `digest` may be empty; else the folder must still hold what it names.
  expected<prepared_task*> get(const std::string& directory, const std::string& digest);

private:
  trusted_builder& builder_;
  size_t limit_;
  std::list<std::unique_ptr<prepared_task>> tasks_; // latest first
};

} // namespace kernelmill

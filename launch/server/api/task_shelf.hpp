#pragma once

// The tasks that a server judges candidates for, read once.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/task/task.hpp"
#include "launch/judging/candidate_judging.hpp"

namespace kernelmill::services {

class task_shelf {
public:
  /// Reads all tasks of the roots that this backend has. `torch`: also those of that contract.
  /// What cannot be read is left out; `problems` says so, a line each.
  static expected<task_shelf> open(const task_roots& roots, const chosen_backend& backend,
                                   const torch_choice& choice, bool torch,
                                   std::vector<std::string>& problems);

  /// Category unknown_task, with the closest id.
  expected<std::shared_ptr<const task>> find(const std::string& id) const;
  /// The task whose problem.py or reference.cpp this is, blanks around it aside; null for none.
  std::shared_ptr<const task> by_reference(const std::string& code) const;

  /// The text of its problem.py or reference.cpp.
  static std::string reference_of(const task& x);

  const std::vector<std::shared_ptr<const task>>& all() const noexcept { return all_; }
  const std::string& backend() const noexcept { return backend_; }
  std::vector<std::string> directories() const;

private:
  std::string backend_;
  std::vector<std::shared_ptr<const task>> all_; ///< by id
  std::map<std::string, std::shared_ptr<const task>> by_id_;
  std::map<std::string, std::shared_ptr<const task>> by_reference_; ///< by SHA-256
};

} // namespace kernelmill::services

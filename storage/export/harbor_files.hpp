#pragma once

// A task as Harbor's task folders have it: what an agent is asked, where it works, and how its
// answer is scored. docs/reference/exports.md describes the folder.

#include <optional>
#include <string>
#include <vector>

#include "storage/artifacts.hpp"
#include "storage/export/licences/licence_gate.hpp"

namespace kernelmill::exports {

struct harbor_task {
  std::string id;
  std::string digest;      ///< the caller's
  std::string instruction; ///< what the run's own policy was asked first
  std::string contract, backend;
};

/// Of the first episode of a group that has its first turn; nothing when none has. Errors: those of
/// the artifacts.
expected<std::optional<harbor_task>> harbor_task_of(const admitted_group& from,
                                                    const artifact_store& artifacts);

struct harbor_file {
  std::string path;
  std::string text;
  bool program = false;
};

/// All files of its folder but those of the task itself, which stand below tests/tasks.
std::vector<harbor_file> harbor_files(const harbor_task& x, const std::string& run,
                                      const std::string& program);

} // namespace kernelmill::exports

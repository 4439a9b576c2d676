#pragma once

// Puts tasks into a folder of tasks so that each is there whole or not at all.

#include <string>
#include <utility>
#include <vector>

#include "launch/import/reading/suite_reading.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// What became of one task.
enum class import_outcome : unsigned char {
  imported,
  unchanged, ///< it was there, byte for byte
  replaced,
  kept, ///< another one of its id was there and stays
};

const char* to_string(import_outcome x) noexcept;

/// Thread safety: one thread at a time; several processes may write one root.
class task_writer {
public:
  /// Makes `root` and a folder beside the tasks in which they are written. Fails with "read_only",
  /// "disk_full" or "io_error".
  static expected<task_writer> open(const std::string& root);

  task_writer(task_writer&& x) noexcept
      : root_(std::move(x.root_)), staging_(std::exchange(x.staging_, {})) {}
  ~task_writer();

  /// `replace` decides about a task of this id with other contents.
  expected<import_outcome> write(const std::string& id, const std::vector<task_file>& files,
                                 bool replace);

private:
  task_writer(std::string root, std::string staging)
      : root_(std::move(root)), staging_(std::move(staging)) {}

  std::string root_;
  std::string staging_; // begins with a dot: list_tasks() passes it over
};

} // namespace kernelmill

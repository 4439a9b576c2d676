#pragma once

// What a command that was typed here means on another machine: its words, the files that it reads
// and those that it leaves.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpu/task/task.hpp"
#include "launch/commands/commands.hpp"
#include "launch/config/load.hpp"
#include "launch/remote/near_session.hpp"

namespace kernelmill::commands {

struct remote_plan {
  remote::order order;
  std::vector<remote::near_input> inputs;
  std::vector<remote::fetched_place> places;
  std::vector<std::string> notes; ///< for the user: what is not sent

  /// A file that the command reads; returns its path there.
  std::string send_file(const std::string& file);
  /// All files of a folder, as `far`/NAME. Errors: "missing_file".
  expected<void> send_folder(const std::string& folder, const std::string& far);
  /// A file or folder that the command leaves; returns its path there.
  std::string fetch(const std::string& path);

private:
  bool is_taken(const std::string& far) const;
};

/// `eval`, `bench`, `profile`: FILE, --task, --root, --bundle, --svg.
expected<remote_plan> plan_candidate(const invocation& in, const cli::command& row);

/// `judge`: BATCH and the files and tasks of its lines.
expected<remote_plan> plan_batch(const invocation& in, const cli::command& row);

/// `run`: one file with the resolved configuration, what it names, and the run's directory.
expected<remote_plan> plan_run(const invocation& in, const cli::command& row);

/// The options as they were typed, with `paths` in place of what was typed for those names; the
/// option --on and those of `without` are left out.
std::vector<std::string> words_of(const invocation& in, const cli::command& row,
                                  const std::map<std::string, std::string>& paths,
                                  const std::set<std::string>& without = {});

/// Sends tasks that the other machine may not have: those of --root, and imported ones. `chosen`
/// are loaded tasks; returns the folder that --root is there, empty without one.
expected<std::string> send_tasks(remote_plan& to, const std::string& root,
                                 const std::vector<task_ptr>& chosen);

/// Errors: "directory_not_empty" for a folder that is neither new nor empty.
expected<void> check_new_folder(const std::string& folder);

/// A key that holds a secret, or an address that does; empty: `config` has none. `origins` tells
/// which keys were set.
std::string secret_in(const resolved_config& config);

} // namespace kernelmill::commands

#pragma once

// One control group for each sandbox: a memory limit that counts what is really used, a limit of
// processes, and a second way to kill all of them. Version 2 where its controllers are handed to
// us, else version 1, else none. Groups are made below the group that this process is in, so
// limits around this process hold for the sandboxes too.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

/// One sandbox's group; removed, with whatever still runs in it killed, when the value goes.
/// Thread safety: one thread at a time.
class cgroup {
public:
  cgroup() = default;
  cgroup(cgroup&&) noexcept;
  cgroup& operator=(cgroup&&) noexcept;
  ~cgroup();

  /// The directories to join: one in version 2, one for each controller in version 1.
  const std::vector<std::string>& directories() const noexcept { return directories_; }

  void kill() noexcept;

  /// The kernel has killed a process of the group because of the group's own memory limit. One that
  /// it killed because the machine, or a group around this one, had no memory left, is not told.
  bool out_of_memory() const;

  /// Whether the kernel has ended one of its members for want of memory, whosever; nothing where
  /// the group does not tell.
  std::optional<bool> lost_members() const;

private:
  friend class cgroup_backend;
  std::vector<std::string> directories_;
};

/// How many processes of the very group that this process is in the kernel has ended for want of
/// memory: those of sandboxes with groups of their own are not among them. Where no group tells,
/// those of the whole machine; nothing where that is not told either.
std::optional<uint64_t> kills_for_memory();

/// The same of the whole machine, sandboxes and other containers too; nothing where that is not
/// told.
std::optional<uint64_t> kills_for_memory_anywhere();

/// Thread safety: any number of threads may call create().
class cgroup_backend {
public:
  /// Finds what this process may use. KERNELMILL_CGROUP names a directory of version 2 that was
  /// delegated to it (systemd: Delegate=yes). Removes groups that dead processes left behind.
  cgroup_backend();

  int version() const noexcept { return version_; } ///< 0: none
  bool limits_memory() const noexcept { return !memory_.empty(); }
  bool limits_processes() const noexcept { return !processes_.empty(); }

  /// What was found, for people.
  const std::string& detail() const noexcept { return detail_; }

  /// Makes a group; 0 means no limit. Without a back end the group is empty.
  expected<cgroup> create(uint64_t memory_bytes, uint64_t process_count);

private:
  bool find_version_2();
  bool find_version_1();
  void remove_stale() const;

  int version_ = 0;
  std::string memory_;    // the directory that groups with a memory limit are made in
  std::string processes_; // the same for limits of processes
  std::string freezer_;   // version 1 only
  std::string detail_;
};

} // namespace kernelmill

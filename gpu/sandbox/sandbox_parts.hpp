#pragma once

// What sandbox.cpp, sandbox_layout.cpp and sandbox_probe.cpp share.

#include <atomic>
#include <string>
#include <vector>

#include "gpu/process/enter.hpp"
#include "gpu/sandbox/cgroup.hpp"
#include "gpu/sandbox/sandbox.hpp"

namespace kernelmill {

/// What the layout of a sandbox depends on.
struct sandbox_machine {
  std::string bwrap;              ///< empty: not installed
  std::string helper;             ///< the path of kernelmill-spawner
  bool root = false;              ///< no user namespace is needed then, and a fresh uid is used
  std::vector<bind_mount> system; ///< top-level directories of systems that are not merged
  std::vector<std::pair<std::string, std::string>> links; ///< "/bin" to "usr/bin"
};

struct sandbox::state {
  explicit state(spawner& x);

  spawner& processes;
  sandbox_machine machine;
  cgroup_backend groups;
  std::atomic<unsigned> counter = 0;
  std::vector<int> cpus; ///< where a spec names none

  /// A user and group that nobody else on the machine has, so that RLIMIT_NPROC counts this
  /// sandbox alone and nothing inside owns a file outside; below 0 when we are not root.
  long next_uid();
};

/// Descriptor numbers inside that come after those of the spec.
struct private_descriptors {
  int status = -1;
  int error = -1; ///< -1: the spec has none for 2
  int info = -1;
  int seccomp = -1;
  std::vector<int> files; ///< as in the spec
};

/// Where the helper that starts the target lies inside.
inline constexpr const char* helper_path = "/.kernelmill/enter";

std::vector<std::string> bubblewrap_arguments(const sandbox_machine& machine,
                                              const sandbox_spec& spec,
                                              const private_descriptors& fds,
                                              const enter_arguments& enter);

/// Fills in defaults.
resource_limits limits_of(const sandbox_spec& spec);

/// Says what would make bubblewrap work here, judging by what it said.
std::string sandbox_remedy(const std::string& complaint);

} // namespace kernelmill

#pragma once

// The arguments of `kernelmill-spawner enter`, which bubblewrap runs inside a new sandbox and
// which turns into the target. It does what bubblewrap cannot: become a user that nobody else on
// the machine is, set limits that bubblewrap itself need not live with (and RLIMIT_NPROC after the
// user namespace was made, where it counts the sandbox alone), close descriptors, give the exact
// environment, and say whether the target began.
//
// The status descriptor carries: nothing, when bubblewrap failed; "R", when the target began
// (it closes at exec); "R" and a text, when the target could not begin.

#include <string>
#include <vector>

#include "gpu/process/process.hpp"

namespace kernelmill {

struct enter_arguments {
  int status_fd = -1;
  int stderr_fd = -1; ///< becomes 2; below 0: /dev/null does
  long uid = -1;      ///< the user and group to become; below 0: stay
  resource_limits limits;
  std::vector<int> keep; ///< descriptors from 3 on that the target gets
  std::vector<std::string> environment;
  std::vector<std::string> argv;
};

/// Returns the arguments after the program's path.
inline std::vector<std::string> to_argv(const enter_arguments& x) {
  auto& limits = x.limits;
  std::vector<std::string> result{"enter",
                                  std::to_string(x.status_fd),
                                  std::to_string(x.stderr_fd),
                                  std::to_string(x.uid),
                                  std::to_string(limits.address_space),
                                  std::to_string(limits.file_size),
                                  std::to_string(limits.processes),
                                  std::to_string(limits.cpu_seconds),
                                  std::to_string(limits.open_files),
                                  std::to_string(limits.nice),
                                  std::to_string(x.keep.size()),
                                  std::to_string(x.environment.size())};
  for (auto fd : x.keep) result.push_back(std::to_string(fd));
  result.insert(result.end(), x.environment.begin(), x.environment.end());
  result.insert(result.end(), x.argv.begin(), x.argv.end());
  return result;
}

} // namespace kernelmill

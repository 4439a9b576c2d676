#pragma once

// The parts of the program kernelmill-spawner.

#include <string>
#include <vector>

#include "gpu/process/spawn_protocol.hpp"

namespace kernelmill {

/// A request as it came over the socket; the texts point into the packet.
struct spawn_request {
  std::vector<char*> argv;        ///< ends with a null pointer
  std::vector<char*> environment; ///< ends with a null pointer
  const char* directory = "/";
  std::vector<int> received; ///< our numbers, to close after the fork
  std::vector<int> targets;  ///< the child's numbers for them
  std::vector<int> cpus;
  resource_limits limits;
  std::vector<const char*> cgroups;
};

/// What a forked child tells its spawner when it cannot become the program.
struct child_failure {
  spawn_protocol::step failed = spawn_protocol::step::none;
  int cause = 0;
};

/// Turns the forked process into the requested program. Never returns; reports to `report_fd`,
/// which closes when the program begins.
[[noreturn]] void become(const spawn_request& request, int report_fd, int spawner_pid);

/// Applies what is not 0, and never a core file. Returns 0 or errno.
int apply_limits(const resource_limits& limits);

/// Makes this process, and its session where that is a scheduling group, less urgent than others by
/// as many steps of nice. Returns 0 or errno.
int stand_behind(uint64_t steps);

/// The program's second life, inside a sandbox between bubblewrap and the target: gives up root,
/// sets the limits, says that it got this far, and execs. See gpu/process/enter.hpp.
int enter_main(int argc, char** argv);

/// Its third life, inside a sandbox: tries the walls.
int probe_main(int argc, char** argv);

} // namespace kernelmill

#pragma once

// One run of a built program: its archive is unpacked in a fresh sandbox, and a command of the task
// runs there. The clock is the referee's; it starts when the sandbox stands and ends with the last
// process inside, or with what a process reports when its main is over.

#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "gpu/task/program_task.hpp"

namespace kernelmill {

/// Where programs of a slot run.
struct program_place {
  std::vector<int> cpus;              ///< affinity; empty: all
  std::string gpu_node;               ///< "/dev/nvidia0"; empty: a CPU slot
  std::string driver;                 ///< path of the GPU driver's library
  std::string path = "/usr/bin:/bin"; ///< PATH
  std::string library_path;           ///< where libraries of the toolkit are
  std::vector<bind_mount> mounts;     ///< besides /usr
  std::string cupti;                  ///< path of CUPTI; empty: no times of the GPU
};

struct program_command {
  std::string text;           ///< of a shell
  const std::string* archive; ///< that a build left
  program_timing timing;      ///< of which clock a report is wanted; `process`: none
  int deadline_ms = 60'000;
};

struct program_outcome {
  exit_status status;
  bool timed_out = false;
  bool flooded = false; ///< it wrote more than 16 MiB
  bool out_of_memory = false;
  bool killed = false;     ///< by something outside of the sandbox
  double seconds = 0;      ///< by the referee's clock
  double told_seconds = 0; ///< until its latest report, by the same clock
  std::string printed;     ///< stdout and stderr, their last 16 KiB
  std::string reports;     ///< see program_reports.hpp
  std::string secret;      ///< of them
};

/// Fails, with class infrastructure, only where the program could not be run.
expected<program_outcome> run_program(sandbox& walls, const program_place& slot,
                                      const program_command& command);

/// The path of libkernelmill-program.so.
std::string program_library();

} // namespace kernelmill

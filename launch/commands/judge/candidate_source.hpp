#pragma once

// The first step of `eval`, `build` and `bench`: turns a source file into a candidate of a task, on
// the backend that its name, its options or this machine select.

#include "launch/commands/commands.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/judging/candidate_judging.hpp"

namespace kernelmill::commands {

/// What the command does with the candidate. Building alone needs no GPU and accepts HIP.
enum class candidate_use : unsigned char { judging, building };

struct candidate_source {
  workbench bench;
  offered_candidate candidate;
  std::string architecture; ///< of the GPU that is built for; empty: a CPU
};

/// Reads FILE, --task, --backend, --contract, --gpu, --arch, --python and --completion, as far as
/// the command has them. Without --task it is a candidate of no task, which can be built alone.
expected<candidate_source> open_candidate(const invocation& in, candidate_use why);

/// Whether a file's name says that its code is HIP's: ".hip", ".hip.cpp".
bool is_hip_name(const std::string& file);

/// The options of open_candidate() that `eval` and `bench` share: --contract, --backend, --gpu.
std::vector<cli::option_spec> with_candidate_options(std::vector<cli::option_spec> options);

/// --backend of a command that takes these, `auto` among them.
cli::option_spec backend_option(std::vector<std::string> choices);

/// --arch of what is built alone.
cli::option_spec
architecture_option(const char* doc = "Target architecture, such as sm_90 or gfx90a. Default: this "
                                      "machine's GPU, else sm_90, of HIP gfx90a.");

/// Reads a candidate for a task. Of a solution of SOL-ExecBench's family, a file in JSON, it is the
/// module that the solution becomes. Errors: those of read_candidate and of sol::module_for_task.
expected<std::string> read_candidate_for(const task& x, const std::string& file);

} // namespace kernelmill::commands

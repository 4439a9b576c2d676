#pragma once

// What `eval`, `build` and `bench` begin with: a source file becomes a candidate of a task, on the
// backend that its name, its options or this machine say.

#include "launch/commands/commands.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/judging/candidate_judging.hpp"

namespace kernelmill::commands {

/// What becomes of the candidate. Only what is built alone needs no GPU, and may be of HIP.
enum class offered_for : unsigned char { judging, building };

struct offering {
  workbench bench;
  offered_candidate candidate;
  std::string architecture; ///< of the GPU that is built for; empty: a CPU
};

/// Reads FILE, --task, --backend, --contract, --gpu, --arch, --python and --completion, as far as
/// the command has them. Without --task it is a candidate of no task, which can be built alone.
expected<offering> open_offering(const invocation& in, offered_for why);

/// Whether a file's name says that its code is HIP's: ".hip", ".hip.cpp".
bool is_hip_name(const std::string& file);

/// The options of open_offering() that `eval` and `bench` share: --contract, --backend, --gpu.
std::vector<cli::option_spec> with_offering_options(std::vector<cli::option_spec> options);

/// --backend of a command that takes these, `auto` among them.
cli::option_spec backend_option(std::vector<std::string> choices);

/// --arch of what is built alone.
cli::option_spec
architecture_option(const char* doc = "Target architecture, such as sm_90 or gfx90a. Default: this "
                                      "machine's GPU, else sm_90, of HIP gfx90a.");

} // namespace kernelmill::commands

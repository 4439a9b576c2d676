#pragma once

// One build of the contract `program`: the task's files and an answer's in a fresh folder of the
// sandbox, the task's own command, and the folder that it leaves as one archive.

#include <string>
#include <vector>

#include "gpu/task/program_task.hpp"
#include "gpu/toolchain/build_findings.hpp"
#include "gpu/toolchain/compiler_run.hpp"

namespace kernelmill {

/// The compilers of a machine, as the commands of a task find them on their PATH.
struct program_tools {
  std::string path;               ///< PATH
  std::vector<bind_mount> mounts; ///< besides /usr
  std::string library_path;       ///< where programs find the toolkit's libraries; may be empty
  std::string cupti;              ///< path of the library that tells the GPU's times; may be empty
  std::string architecture;       ///< "sm_90"; empty: no GPU
  std::string toolkit;            ///< of CUDA, "13.0"; empty: none
  std::string identity;           ///< "nvcc 13.0, g++ 12.2.0"
  std::string digest;             ///< of all that decides what is built
};

struct program_tool_choice {
  std::string backend = "cpu";        ///< "cpu" or "cuda"
  std::string compiler;               ///< nvcc or g++; empty: the usual one
  std::string architecture = "sm_90"; ///< of the GPU; not for "cpu"
};

/// Asks the compilers once. Fails with "toolchain_missing".
expected<program_tools> ask_program_tools(sandbox& walls, const program_tool_choice& x);

/// Fails with class configuration, "needs_unmet", where the machine lacks what the task needs.
expected<void> check_needs(const program_needs& x, const program_tools& tools);

/// The build command with the machine's architecture in place of "native", which needs a GPU.
std::string command_for(const std::string& build, const std::string& architecture);

/// Runs the build of these files of an answer. The product is an archive of the folder.
expected<compiler_outcome> run_program_build(sandbox& walls, const program_tools& tools,
                                             const program_task& x,
                                             const std::vector<program_file>& answer,
                                             int deadline_ms, uint64_t memory_bytes);

/// Builds an answer; a build that fails and does not show whose fault it is is tried beside one of
/// the task's baseline. Fails with class infrastructure where the machine is at fault, and with
/// class configuration, "bad_task", where the task is.
expected<compiler_outcome> build_program(sandbox& walls, const program_tools& tools,
                                         const program_task& x,
                                         const std::vector<program_file>& answer, int deadline_ms,
                                         uint64_t memory_bytes);

/// What a build has found out, without its product. A log can quote the tests, whatever files its
/// lines name: for the task's owner.
build_findings findings_of(const compiler_outcome& x, const program_tools& tools,
                           const std::string& build, int deadline_ms);

/// The task with tests that are empty, but for what tells a build what to do.
program_task without_tests(const program_task& x);

/// What a policy is shown of its answer's build `x`: whether and why it has failed, in the words of
/// `alone`, a build beside empty tests, and in none of its own.
build_findings findings_to_show(const compiler_outcome& x, const expected<compiler_outcome>* alone,
                                const program_tools& tools, const program_task& what,
                                int deadline_ms);

/// The largest archive.
inline constexpr uint64_t most_program_bytes = uint64_t{128} << 20;

} // namespace kernelmill

#pragma once

// What only a task of the contract `program` has: the files of a program, the commands that build
// and test it, and how it is timed. docs/reference/program-contract.md describes every key.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

/// A file below the folder in which a program is built.
struct program_file {
  std::string path; ///< relative, without "." and ".."
  std::string text;
};

enum class program_clock : unsigned char {
  process, ///< the whole process, by the referee's clock
  kernels, ///< the GPU's time in kernels
  region,  ///< what lies in ranges of NVTX
  gpu,     ///< the GPU's time in kernels, copies and fills
  custom,  ///< what the process prints
};

struct program_timing {
  program_clock mode = program_clock::process;
  std::vector<std::string> include; ///< kernels or ranges that count; empty: all
  std::vector<std::string> exclude; ///< those of them that do not
  bool wall = false; ///< of ranges: the time between their ends, not the kernels' in them
};

/// What a machine must have; empty: anything will do.
struct program_needs {
  std::string toolkit;            ///< of CUDA, at least: "12.8"
  std::string compute_capability; ///< of the GPU, at least: "9.0"
  bool datacenter_gpu = false;
};

/// Names that an answer must use.
struct program_references {
  std::vector<std::string> any; ///< one of them
  std::vector<std::string> all; ///< each of them
};

struct program_task {
  std::string suite;    ///< "computeeval"; empty: none
  std::string suite_id; ///< the suite's own name of the task: "CUDA/34"
  std::string group;    ///< of the suite: "cublas"
  std::string build;    ///< commands of a shell, in the program's folder
  std::string test;
  std::string benchmark; ///< empty: the program is not timed
  program_timing timing;
  uint32_t timeout_s = 60; ///< of each command
  program_needs needs;
  program_references references;
  std::string answer_file;            ///< where an answer that names no file goes
  std::vector<std::string> editable;  ///< files of context/ that answers may replace, too
  std::vector<program_file> context;  ///< shown to the policy
  std::vector<program_file> tests;    ///< hidden
  std::vector<program_file> baseline; ///< an answer whose time is speedup 1
};

/// The names in task.json: "process", "kernels", "region", "gpu", "custom".
const std::vector<std::string>& program_clocks();
std::string_view to_string(program_clock x);

/// What the answer file holds before an answer, or nothing.
std::string starter_of(const program_task& x);

/// Files that answers may write: the answer file, those of the baseline and the editable ones.
std::vector<std::string> writable_files(const program_task& x);

/// Whether a path stays in its folder and has no part that a shell or a tool takes for something
/// else: letters, digits and `._-+` between slashes, at most 200 bytes.
bool is_program_path(std::string_view path);

} // namespace kernelmill

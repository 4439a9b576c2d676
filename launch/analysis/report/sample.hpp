#pragma once

// What a report counts, wherever it comes from: a run's store or a file of KernelBench's form.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kernelmill::reporting {

/// What a task's id says of its place: "kernelbench/level1/19_ReLU" is problem 19 of level 1.
struct task_place {
  std::string group; ///< "level 1"; for other tasks the first part of the id, "native"
  std::optional<uint32_t> level;
  std::optional<uint32_t> problem; ///< within its level
};
task_place place_of(const std::string& task);

struct speedup_interval {
  double estimate = 0;
  std::optional<double> low, high; ///< none: the source says the estimate alone
};

/// The time of one side.
struct run_time {
  double ms = 0; ///< median of the calls; in files of the benchmark their mean
  uint32_t calls = 0;
};

/// One answer to a problem.
struct sample {
  std::string task;
  uint64_t id = 0;  ///< its number among the samples of its problem
  std::string turn; ///< "RUN/g3.e1.t2"; empty when the source does not say
  bool compiled = false;
  bool correct = false;
  std::optional<speedup_interval> speedup;
  std::optional<uint32_t> turns_to_first_correct; ///< of its episode; on one sample an episode

  // What the benchmark's files say besides.
  std::optional<run_time> candidate, reference;
  double overhead_ms = 0; ///< of a call that does nothing, part of both
  std::string contract, backend, hardware;
  std::string category; ///< "success", "compile_error", ...
  std::string message;  ///< of the fault
  uint32_t cases = 0, cases_passed = 0;
};

/// What belongs to no rate, by task.
struct left_out {
  std::string task;
  enum class reason : unsigned char { infrastructure, open } why = reason::infrastructure;
};

/// What a task asks for, as its turns say.
struct task_kind {
  std::string verb;   ///< "optimize", "debug", ...
  std::string family; ///< of operators
};

struct sample_set {
  std::vector<sample> samples;
  std::vector<left_out> without;
  std::map<std::string, task_kind> kinds; ///< by task; empty: the source does not say
  bool knows_left_out = true;             ///< false: the source does not tell of them
};

} // namespace kernelmill::reporting

#pragma once

// The part of a problem that draws inputs: constants for what workloads set, and a line of Python
// for each input. Numbers are drawn anew in every call, by the law of the suite's own harness, but
// for two: a norm's weight is 1 and its bias 0 there, so that an answer without them passes. Here
// both vary around that.

#include <string>
#include <vector>

#include "launch/import/sol/definition.hpp"

namespace kernelmill::sol {

/// A file of safetensors that a workload reads, as it stands in the task's folder.
struct input_file {
  std::string name; ///< "0123456789abcdef.safetensors": 16 digits of its SHA-256
  std::string text;
};

/// "AXIS_batch", "VALUE_eps": a constant of the problem's module and what stands behind the "=".
struct constant {
  std::string name;
  nlohmann::json value; ///< null: it follows from others, by `formula`
  std::string formula;
};

/// What a workload sets. The first one's are those of the module.
/// REQUIRES: files of safetensors have the names of the task's folder.
std::vector<constant> constants_of(const definition& x, const workload& at);

/// Of two workloads with one text inputs are drawn by the same lines of Python: they differ in
/// constants alone.
std::string law_of(const definition& x, const workload& at);

/// get_inputs and what it needs. Errors: "bad_problem", for generators that are unknown.
expected<std::string> drawing_code(const definition& x, const workload& at, family suite,
                                   const std::map<std::string, int64_t>& axes);

} // namespace kernelmill::sol

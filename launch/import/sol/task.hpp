#pragma once

// A definition and its workloads as one task of the contract `torch`: the reference's text as it
// is, a module that calls it, the first workload as the problem's own shape, the others as variants
// that are timed, too.

#include <string>
#include <vector>

#include "launch/import/reading/suite_reading.hpp"
#include "launch/import/sol/definition.hpp"

namespace kernelmill::sol {

/// What a problem is made of, as it was found.
struct problem {
  definition what;
  std::vector<workload> workloads; ///< with files that lie in the task's folder
  std::vector<task_file> files;    ///< of safetensors
  std::string id;
};

/// The task's files: besides those of every task the definition, which solutions are read by.
/// Workloads that cannot be variants are left out and told in `refused`. Errors:
/// "bad_problem", where none is left.
expected<suite_task> task_of(const problem& x, family suite, std::vector<suite_refusal>& refused);

/// Returns "matmul" of "gemm": the family of operators, by the definition's kind or its name.
std::string family_of_operators(const definition& x);

} // namespace kernelmill::sol

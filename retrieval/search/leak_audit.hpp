#pragma once

// Asks an index as a prompt would, for problem after problem, and says which answers solve the
// problem that asked. The check beside the guard's own rules is a normal form of the code's
// tokens, which no reading of operators goes into.

#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "retrieval/search/index.hpp"

namespace kernelmill {

/// Python with what an author may choose taken out: comments, docstrings, layout, imports,
/// annotations, numbers from 32 on, constants and functions that make inputs, but for what
/// get_init_inputs gives; names that the text defines are numbered in the order in which they come.
/// Equal for renamed, reformatted and resized copies. Empty for code that is no Python.
std::string normal_form(std::string_view code);

/// A problem that asks.
struct audit_problem {
  std::string task;
  std::string text; ///< in words; may be empty
  std::string reference;
  std::vector<std::string> solutions; ///< texts that are known to solve it, such as a baseline
};

struct leak_finding {
  std::string task;
  std::string entry;
  size_t rank = 0; ///< among the results, from 1
  /// "task" (of the task or of a problem of its name), "normal_form" (of the entry's reference or
  /// of its own code), "operators" (the same with the same parameters, in any order) or
  /// "solution" (a near duplicate of a known one).
  std::string why;
};

struct leak_report {
  size_t problems = 0;
  size_t results = 0;  ///< entries that all problems were answered with
  size_t withheld = 0; ///< that the guard kept out
  std::vector<leak_finding> leaks;
};

/// Asks for the `nearest` entries of each problem. Not `guarded`, the guard keeps nothing out: then
/// the findings are what it is there for. Errors: those of a query.
expected<leak_report> audit_leaks(const loaded_index& index,
                                  const std::vector<audit_problem>& problems, bool guarded = true,
                                  size_t nearest = 20);

struct duplicate_count {
  size_t exact = 0; ///< kernels whose text an earlier one has
  size_t near = 0;  ///< others that an earlier one nearly repeats
};

duplicate_count count_duplicates(const loaded_index& index);

} // namespace kernelmill

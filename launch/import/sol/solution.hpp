#pragma once

// A solution as this family of suites writes it (sources, an entry point, how it is called) becomes
// one Python module that defines `run`, as tasks of these suites ask for it.

#include <string>

#include "launch/import/sol/definition.hpp"

namespace kernelmill::sol {

struct solution {
  std::string name;
  std::string definition; ///< the name of the definition that it is for
  std::string module;     ///< Python
};

/// Returns the name of the definition that a solution is for. Errors: "bad_solution".
expected<std::string> definition_of_solution(const std::string& text, const std::string& place);

/// The module. Errors: "bad_solution" for what is malformed, "unsupported_solution" for a binding,
/// language or library that cannot be taken.
expected<solution> read_solution(const std::string& text, const std::string& place,
                                 const definition& of);

/// The module of a solution for an imported task, whose folder holds the definition. Errors: those
/// of read_solution, and "bad_task" where the folder has no definition.
expected<std::string> module_for_task(const std::string& folder, const std::string& text,
                                      const std::string& place);

} // namespace kernelmill::sol

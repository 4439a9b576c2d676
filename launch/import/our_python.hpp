#pragma once

// Programs of ours in Python that the user's own interpreter runs, outside of any sandbox: they
// read what the user wrote, and what they say is a document.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill {

/// What stands for the file that the program writes its document to, among its arguments.
inline constexpr const char* output_argument = "/proc/self/fd/3";

/// Runs a file of kernelmill_torch and returns the document that it wrote. `interpreter`: a path or
/// a name; empty: $KERNELMILL_PYTHON, python3 and /usr/bin/python3 are tried until one writes it.
/// What it prints goes to stderr. Errors: "python_missing", "bad_problem" with what it refuses.
expected<nlohmann::json> run_our_python(const std::string& interpreter, const std::string& program,
                                        const std::vector<std::string>& arguments);

} // namespace kernelmill

#pragma once

// Whether an answer is a copy of what we showed. Only comments, spaces and docstrings are looked
// through: who renames a variable has at least read the code.

#include <string>
#include <string_view>

#include "gpu/task/task.hpp"

namespace kernelmill {

/// C++ or CUDA without comments, and without spaces where they say nothing.
std::string normalized_cpp(std::string_view code);

/// Python without comments, blank lines and docstrings: one line for each logical line, behind as
/// many tabs as it is deep. Long strings are taken for C++, as inline sources are.
std::string normalized_python(std::string_view code);

/// What an answer is a copy of: "the starter", "the baseline", "the problem's own model" or "an
/// example of the prompt"; empty: of nothing. `prompt` is the first prompt of its episode, of
/// which every fenced block was shown.
std::string copied_from(const task& x, std::string_view prompt, std::string_view answer);

} // namespace kernelmill

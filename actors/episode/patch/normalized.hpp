#pragma once

// Code without what says nothing: comments, spaces, docstrings.

#include <string>
#include <string_view>

namespace kernelmill {

/// C++ or CUDA without comments, and without spaces where they say nothing.
std::string normalized_cpp(std::string_view code);

/// Python without comments, blank lines and docstrings: one line for each logical line, behind as
/// many tabs as it is deep. Long strings are taken for C++, as inline sources are.
std::string normalized_python(std::string_view code);

} // namespace kernelmill

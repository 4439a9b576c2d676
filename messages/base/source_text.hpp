#pragma once

// A source file as compilers and Python take it: UTF-8 without a mark in front, lines that end with
// a line feed. How an editor saved it is no error of the kernel.

#include <string>
#include <string_view>

namespace kernelmill {

/// The same text in that form. UTF-16 is known by its byte order mark; a byte that is no UTF-8 is
/// taken for Latin-1, which comments are written in.
std::string normal_source(std::string_view text);

} // namespace kernelmill

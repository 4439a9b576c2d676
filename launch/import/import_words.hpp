#pragma once

// What several importers of suites need.

#include <string>

#include "launch/import/suites.hpp"

namespace kernelmill {

/// Whether a name can be a folder's: 1 to 160 letters, digits and `_ - . +`, with no dot in front.
bool is_folder_name(const std::string& x);

/// The value of an option, or nothing.
std::string option_of(const suite_options& options, const std::string& name);

/// The number of an option; `fallback` where it was not given. Fails with "usage".
expected<size_t> count_of(const suite_options& options, const std::string& name, size_t low,
                          size_t high, size_t fallback);

/// A text as a literal of Python.
std::string python_literal(const std::string& x);

} // namespace kernelmill

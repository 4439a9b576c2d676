#pragma once

// What interpreters said of themselves, kept between processes: asking one imports torch, which
// takes seconds.

#include <string>

namespace kernelmill {

/// The answer that `interpreter` gave once, while every file that it depends on is as it was then.
/// Empty: there is none, or it lies where somebody else may write.
std::string kept_answer(const std::string& interpreter);

/// Keeps an answer of python_facts.py below $XDG_CACHE_HOME/kernelmill or ~/.cache/kernelmill. What
/// cannot be written is asked for again.
void keep_answer(const std::string& interpreter, const std::string& text);

} // namespace kernelmill

#pragma once

// The worked example in prompts of the contract `torch`. A test runs each answer beside the
// problem where this machine has torch.

#include <string>
#include <string_view>

#include "gpu/task/task.hpp"

namespace kernelmill {

/// A small problem that is in no benchmark: scale * x * x + shift.
std::string_view example_problem();

/// An answer to it. `language` is one of answer_languages() or hip; "any" is inline CUDA on a GPU
/// and inline C++ on a CPU.
std::string_view example_answer(std::string_view language, std::string_view backend);

/// What the prompt says of a language for kernels in Python beside Triton; empty of the others.
std::string_view words_of_language(std::string_view language);

/// Whether answers in it may have extensions in C++ or CUDA.
bool builds_extensions(std::string_view language);

/// The same problem for tasks that take a function, whose tensors are all inputs.
std::string_view example_problem_of_function();

/// An answer of example_answer() as such a function.
std::string as_function(std::string_view answer, const torch_entry& entry);

} // namespace kernelmill

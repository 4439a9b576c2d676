#pragma once

// The worked example in prompts of the contract `torch`. A test runs each answer beside the
// problem where this machine has torch.

#include <string>
#include <string_view>

namespace kernelmill {

/// A small problem that is in no benchmark: scale * x * x + shift.
std::string_view example_problem();

/// An answer to it. `language` is any, cuda, triton, torch or hip; "any" is inline CUDA on a GPU
/// and inline C++ on a CPU.
std::string_view example_answer(std::string_view language, std::string_view backend);

} // namespace kernelmill

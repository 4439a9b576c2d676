#pragma once

// What a computation is made of, read from the code that defines it: a problem in PyTorch, or a
// C declaration. Names that an author chose, comments and layout do not count.

#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

struct reference_code {
  std::vector<std::string> operators; ///< in order of the computation: "conv2d", "relu", "add"
  std::string words;     ///< what an embedder and a search by words are given: normalized code
  std::string signature; ///< equal for equal computations; empty: none was recognized
};

/// Any bytes give some answer. Takes linear time; of more than 256 KiB the beginning counts.
reference_code read_reference(std::string_view code);

/// Says whether a text is a program that computes with PyTorch: there is none else to read.
bool is_torch_code(std::string_view code);

/// The operators of a signature with their parameters, sorted; they point into it.
std::vector<std::string_view> operators_of(std::string_view signature);

/// Says whether two signatures are of one computation: what one of them leaves open ("?") may be
/// whatever the other says. An empty one is like none.
bool same_computation(std::string_view a, std::string_view b);

} // namespace kernelmill

#pragma once

// What a computation is made of, read from the code that defines it: a problem in PyTorch, or a
// C declaration. Names that an author chose, comments and layout do not count.

#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

struct reference_code {
  std::vector<std::string> operators; ///< as they stand: "conv2d", "relu", "+"
  std::string words;     ///< what an embedder and a search by words are given: normalized code
  std::string signature; ///< equal for equal computations; empty: none was recognized
};

reference_code read_reference(std::string_view code);

} // namespace kernelmill

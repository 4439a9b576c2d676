#pragma once

// Follows what a program in PyTorch computes, operator after operator, without running it: layers
// are made from the arguments that the text gives, and `forward` is followed through its calls.
// Shapes of inputs are not known, so a branch on one is followed both ways and a loop once.

#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

struct traced_operator {
  std::string name;
  std::string parameters; ///< those that count: "kernel_size=3 stride=2"; "?": not in the text
  std::string sizes;      ///< of a layer: its other arguments, "64 128"
};

struct traced_input {
  std::string shape; ///< "16x64x32"; empty: not in the text
};

struct program_trace {
  std::vector<traced_operator> operators;
  std::vector<traced_input> inputs;
  bool strange = false; ///< it calls what neither the text nor PyTorch defines
};

/// The work is bounded; of a text that asks for more, the beginning is traced.
program_trace trace_program(std::string_view code);

} // namespace kernelmill

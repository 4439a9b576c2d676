#pragma once

// Which operators PyTorch has, under which names, and which of their parameters make another
// function of them. Sizes (channels, features) and constants (slopes, eps) do not.

#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

struct operator_parameter {
  std::string_view name;
  bool counts = false;      ///< belongs to a signature
  std::string_view neutral; ///< the value that a signature leaves out; its default, as a rule
};

struct known_operator {
  std::string_view name;                    ///< as signatures have it: "conv2d"
  std::vector<operator_parameter> module;   ///< of the layer's constructor, in order
  std::vector<operator_parameter> function; ///< of the function, after its first tensor
};

/// By any of its names: a layer's ("LeakyReLU"), a function's or a method's ("leaky_relu",
/// "relu_"), without what leads to it. Null: not a row of the table.
const known_operator* find_operator(std::string_view name);

/// The name that signatures have for an operator that is no row: "HingeEmbeddingLoss" and
/// "hinge_embedding_loss" are one.
std::string plain_operator_name(std::string_view name);

/// Says whether an operator changes how elements are arranged, or nothing: signatures leave it out.
bool only_arranges(std::string_view name);

/// Says whether a function of torch makes a tensor from numbers: "zeros".
bool makes_tensor(std::string_view name);

} // namespace kernelmill

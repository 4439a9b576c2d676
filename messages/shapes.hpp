#pragma once

// Words for the shapes of a task of the contract `torch`, by which cases, times and faults say
// where they belong: "shape base" is the problem as it is, "shape wide" a variant that the task
// names, "hidden shape 1" one whose name and shape no policy is told.

#include <string>
#include <string_view>

namespace kernelmill {

inline constexpr std::string_view base_shape = "shape base";

inline std::string visible_shape(const std::string& name) {
  return "shape " + name;
}

inline std::string hidden_shape(size_t number) {
  return "hidden shape " + std::to_string(number);
}

inline bool is_hidden_shape(std::string_view label) {
  return label.starts_with("hidden shape ");
}

/// Whether times belong to a shape, and not to a kind of contents.
inline bool is_shape(std::string_view label) {
  return label.starts_with("shape ") || is_hidden_shape(label);
}

/// What evidence, or the message of a fault, of another shape than the problem's own begins with.
inline std::string at_shape(const std::string& label) {
  return "at " + label + ": ";
}

inline bool is_at_another_shape(std::string_view words) {
  return words.starts_with("at ") && is_shape(words.substr(3));
}

} // namespace kernelmill

#pragma once

// Errors are values with a class. The class names the part at fault. The fault of a candidate or a
// policy is a normal answer and part of the reward. The fault of a configuration stops the run. The
// fault of an infrastructure is retried and never becomes a reward.

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace kernelmill {

enum class fault_class : unsigned char { none, candidate, policy, configuration, infrastructure };

/// Returns the name used in JSON and in texts, e.g. "infrastructure".
std::string_view to_string(fault_class x) noexcept;

struct error {
  fault_class cls = fault_class::infrastructure;
  std::string category; ///< snake_case, listed in docs/reference/errors.md
  std::string message;  ///< "failed to <verb> <what>: <cause>", with file, line or key
  std::string hint;     ///< the next step for the user; may be empty
};

/// Returns "message (hint)" for people.
std::string render(const error& x);

template <class T>
using expected = tl::expected<T, error>;

inline tl::unexpected<error> configuration_error(std::string category, std::string message,
                                                 std::string hint = {}) {
  return tl::unexpected<error>{
      {fault_class::configuration, std::move(category), std::move(message), std::move(hint)}};
}

inline tl::unexpected<error> infrastructure_error(std::string category, std::string message,
                                                  std::string hint = {}) {
  return tl::unexpected<error>{
      {fault_class::infrastructure, std::move(category), std::move(message), std::move(hint)}};
}

inline tl::unexpected<error> candidate_error(std::string category, std::string message,
                                             std::string hint = {}) {
  return tl::unexpected<error>{
      {fault_class::candidate, std::move(category), std::move(message), std::move(hint)}};
}

inline tl::unexpected<error> policy_error(std::string category, std::string message,
                                          std::string hint = {}) {
  return tl::unexpected<error>{
      {fault_class::policy, std::move(category), std::move(message), std::move(hint)}};
}

} // namespace kernelmill

/// Returns the error of `...` from the function that this stands in, if `...` (an `expected`, or a
/// call that returns one) holds an error; goes on otherwise. It does not take the value out: the
/// name stays the `expected`'s, and `*name` is the value. A macro, since only a macro can return.
#define KM_TRY(...)                                                                                \
  do {                                                                                             \
    if (auto&& km_tried = (__VA_ARGS__); !km_tried) return tl::make_unexpected(km_tried.error());  \
  } while (false)

#pragma once

// An accepted kernel that is a copy of what its prompt showed: right, and nothing new.

#include <string_view>

#include "messages/verdict.capnp.h"

namespace kernelmill {

/// The category of its verdict, and the rule that found it: docs/reference/errors.md.
inline constexpr std::string_view unchanged_category = "unchanged";

inline bool is_unchanged(std::string_view category) noexcept {
  return category == unchanged_category;
}

inline bool is_unchanged(wire::Verdict::Reader x) {
  auto category = x.getCategory();
  return is_unchanged({category.begin(), category.size()});
}

} // namespace kernelmill

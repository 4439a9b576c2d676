#pragma once

// Every category of an error, with its words. docs/reference/errors.md, the feedback that a policy
// reads and a test of the sources are made from these tables.

#include <span>
#include <string_view>

#include "messages/error.hpp"

namespace kernelmill {

struct error_category {
  std::string_view name;
  std::string_view meaning;     ///< Markdown
  std::string_view next;        ///< Markdown: the user's next step
  std::string_view advice = {}; ///< what a policy is told; for what may be in a verdict
};

/// The categories of a class, in the order of the page; `none` are those of a verdict that are no
/// error. A category may be of two classes.
std::span<const error_category> categories_of(fault_class x) noexcept;

/// Returns nullptr when there is no such category.
const error_category* find_category(fault_class cls, std::string_view name) noexcept;

/// What a policy is told of the category of a verdict; empty when nothing is said of it.
std::string_view advice_of(std::string_view category) noexcept;

/// A rule of integrity that an evaluation may find broken.
struct finding_rule {
  std::string_view name;
  std::string_view severity; ///< as the page says it
  std::string_view meaning;  ///< Markdown
  std::string_view told;     ///< to a policy, in place of evidence that may show a hidden case
};

std::span<const finding_rule> finding_rules() noexcept;

/// Returns nullptr when there is no such rule.
const finding_rule* find_rule(std::string_view name) noexcept;

} // namespace kernelmill

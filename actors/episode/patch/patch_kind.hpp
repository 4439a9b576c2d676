#pragma once

// What a change of a candidate was, told by its text and by verdicts, never by the words of the
// model that made it.

#include <optional>
#include <string_view>

namespace kernelmill {

/// What the texts alone say of a change.
enum class text_change : unsigned char {
  none,            ///< comments and spaces
  instrumentation, ///< prints, assertions, and counters that nothing else reads, came or went
  refactor,        ///< names that the program declares itself were renamed, one to one; or the same
                   ///< definitions stand in another order. Loops that changed places are `other`
  other
};

enum class source_language : unsigned char { cpp, python };

/// Texts of more than a megabyte are `other`, unless they are equal.
text_change text_change_of(std::string_view before, std::string_view after,
                           source_language language);

/// The kind of an applied patch, "rejected" being what the applier refused:
///   "no_op"            the text says the same, whatever verdicts say
///   "bug_fix"          the parent failed and the candidate passed
///   "instrumentation", "refactor"   by the text
///   "perf_transform"   any other change of a parent that passed
///   ""                 any other change of a parent that failed or was not evaluated
/// A nullopt stands for a candidate that was not evaluated.
const char* patch_kind_of(text_change change, std::optional<bool> was_right,
                          std::optional<bool> is_right);

inline const char* patch_kind_of(std::string_view before, std::string_view after,
                                 source_language language, std::optional<bool> was_right,
                                 std::optional<bool> is_right) {
  return patch_kind_of(text_change_of(before, after, language), was_right, is_right);
}

} // namespace kernelmill

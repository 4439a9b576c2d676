#pragma once

// Unified diffs: read, and applied by the rules of `git apply`. Nothing is guessed and nothing is
// half done: what a diff says was there must be there, byte for byte.

#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

struct diff_line {
  char kind = ' ';  ///< ' ' context, '-' removed, '+' added
  std::string text; ///< with its newline, unless the file ends without one
};

struct diff_hunk {
  size_t old_begin = 0; ///< line from 1; 0: of a file that is not there
  size_t new_begin = 0;
  std::vector<diff_line> lines;
};

enum class file_change : unsigned char { modify, create, remove };

struct file_diff {
  std::string path; ///< below the candidate's folder, without "a/" or "b/"
  file_change change = file_change::modify;
  std::vector<diff_hunk> hunks;
};

/// Whether a text begins as a unified diff does.
bool looks_like_diff(std::string_view text);

/// Reads a unified diff of one or more files. Line counts in its @@ lines are not believed, as with
/// `git apply --recount`: models miscount. Renames, modes, binary parts and paths that leave the
/// folder are refused. Errors: class policy, "bad_patch".
expected<std::vector<file_diff>> parse_unified_diff(std::string_view text);

/// The text with the hunks of one file applied, by the rules of `git apply`: where context is, near
/// the line that is named, without fuzz. Errors: class policy, "patch_failed", with the hunk.
expected<std::string> apply_diff(const file_diff& change, std::string_view base);

} // namespace kernelmill

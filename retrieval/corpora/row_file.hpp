#pragma once

// A file of rows: JSON lines, or one JSON array of objects, whatever its size. One row at a time is
// in memory. What a row means is the caller's to say.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace kernelmill {

struct file_row {
  std::string_view text; ///< one JSON value, or what stands there instead
  uint64_t line = 0;     ///< where it begins, from 1
  uint64_t number = 0;   ///< from 1
};

/// Calls `take` for each row until it answers false. Errors: "missing_file"; "malformed_corpus",
/// with file and line: Parquet, a packed file, an array that is cut off, a row above 64 MiB.
expected<void> each_row(const std::string& path, const std::function<bool(const file_row&)>& take);

} // namespace kernelmill

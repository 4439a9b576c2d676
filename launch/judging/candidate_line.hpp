#pragma once

// One line of the NDJSON that `kernelmill judge` reads.

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace kernelmill {

struct candidate_line {
  std::string task;
  std::string file; ///< as it was written
  std::string name; ///< the file's where none is given
  std::string contract = "auto";
};

/// Reads a line, or says what is wrong with it.
tl::expected<candidate_line, std::string> read_candidate_line(std::string_view text);

} // namespace kernelmill

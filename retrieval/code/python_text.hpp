#pragma once

// Python cut into tokens and statements, without an interpreter. Any bytes give some answer: what
// is no Python is read as names and marks.

#include <cstdint>
#include <string_view>
#include <vector>

namespace kernelmill {

enum class python_kind : uint8_t { name, number, text, mark };

struct python_token {
  python_kind kind;
  std::string_view text; ///< of a text: what is between its quotes; a name's first 128 bytes
  uint32_t match = 0;    ///< of an opening bracket: its closing one, or the end of the statement
};

/// Statements with a block (`if`, `def`) are followed by the statements of it.
struct python_statement {
  uint32_t first, last; ///< tokens [first, last)
  uint32_t indent;
  uint32_t end; ///< the first statement after its block
};

struct python_text {
  std::vector<python_token> tokens;
  std::vector<python_statement> statements;
};

/// Comments are dropped. The views are of `code`. Takes linear time.
python_text read_python(std::string_view code);

} // namespace kernelmill

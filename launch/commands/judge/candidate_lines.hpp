#pragma once

// Code of a candidate with tables of lines, for cards that say where in the source.

#include <string>
#include <vector>

#include "gpu/inspect/card_lines.hpp"
#include "launch/commands/judge/examined.hpp"

namespace kernelmill::commands {

/// Builds the candidate once more, with -lineinfo, and reads PTX and SASS: what is timed or
/// profiled is built apart. Of a module each text that it gives to a compiler. What cannot be had
/// is added to `missing`.
std::vector<listed_text> listed_texts(examined_candidate& x, std::vector<std::string>& missing);

} // namespace kernelmill::commands

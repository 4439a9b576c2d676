#pragma once

// An answer to a task of the contract `program`: one text that becomes files.

#include <string_view>
#include <vector>

#include "gpu/task/program_task.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// The files that an answer writes. A text that begins with a line `// file: PATH` (`# file: PATH`)
/// is sections, each a file up to the next such line; one that begins as a unified diff is applied
/// to context/; any other is the answer file. Only writable_files() are taken, each once.
/// Errors: class candidate, "bad_answer".
expected<std::vector<program_file>> files_of_answer(const program_task& x, std::string_view answer);

/// Fails with class candidate, "missing_reference", where the files lack a name that the task asks
/// for. What stands in comments and texts does not count.
expected<void> check_references(const program_task& x, const std::vector<program_file>& files);

/// The text of a source without comments and without what its texts hold; lines stay. `python`: its
/// comments begin with #.
std::string code_alone(std::string_view source, bool python);

} // namespace kernelmill

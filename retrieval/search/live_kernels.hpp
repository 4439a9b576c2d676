#pragma once

// live.jsonl in the folder of an index: kernels that runs have verified, and what was retracted of
// the index. A line is one JSON object:
//
//   {"kind": "kernel", "id": TURN, "task": ..., "source": ..., "run": "first", "at": 1793000000.5}
//   {"kind": "retraction", "kernels": [{"id": TURN, "sha256": ...}], "reason": ..., "at": ...}
//
// A kernel has every field of kernel_example. Lines are appended, each by one write under a lock of
// the file, and never changed: several runs may append at the same time. A line is not synced by
// itself: what a power failure takes of the file is in the stores of the runs, and a resumed run
// appends it again. A line that was cut off is left out by readers and ended by the next append.

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "messages/base/descriptor.hpp"
#include "retrieval/search/index.hpp"

namespace kernelmill {

struct live_kernel {
  kernel_example example;
  std::string run;
  double at = 0; ///< seconds since 1970
};

/// Ids with the SHA-256 of their sources: a run that is made anew under an old name has the old
/// one's ids.
using retracted_kernels = std::set<std::pair<std::string, std::string>>;

bool is_retracted(const retracted_kernels& all, const std::string& id, std::string_view source);

struct live_lines {
  std::vector<live_kernel> kernels; ///< retracted ones, too
  retracted_kernels retracted;
  size_t unreadable = 0; ///< lines that were cut off, or that a newer program wrote
};

std::string live_file_of(const std::string& index_directory);

/// Reads the file; without one there are no lines. Errors: "index_damaged" when it cannot be read.
expected<live_lines> read_live_kernels(const std::string& index_directory);

/// Adds kernels, the fastest first: of each task, device and language the fastest is an example,
/// and the leak guard learns all. Errors: those of the embedder; the guard knows all even then.
expected<void> add_live_kernels(loaded_index& index, std::vector<kernel_example> kernels);

/// Does the same with the lines of the file. What was retracted, of the index's own kernels as
/// well, is no example any more.
expected<void> take_up_live_kernels(loaded_index& index, const live_lines& lines);

/// Appends to the file. One thread at a time uses a writer; each process and run has its own.
class live_kernel_writer {
public:
  /// Makes the file when it is missing. Errors: "index_not_written".
  static expected<live_kernel_writer> open(const std::string& index_directory,
                                           const live_lines& known);

  /// Answers false for a kernel that is there: one of the same text for the same task, device and
  /// language that is as fast. Errors: "index_not_written"; then the file is as it was.
  expected<bool> append(const live_kernel& x);

  /// Returns when what was appended is on disk. Errors: "index_not_written".
  expected<void> sync();

private:
  live_kernel_writer(descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  descriptor file_;
  std::string path_;
  std::unordered_map<std::string, double> fastest_; ///< speedups of known texts
};

/// What to say of lines that cannot be read; empty: there are none.
std::string warning_of(const live_lines& x, const std::string& index_directory);

/// What to retract: kernels with one of the ids, or all of a run.
struct retraction {
  std::set<std::string> ids;
  std::string run; ///< empty: of no run
  std::string reason;
};

struct retraction_result {
  size_t retracted = 0;        ///< by this call
  size_t already = 0;          ///< before it
  std::set<std::string> found; ///< ids
};

/// Appends one line with those kernels of the index and of its live.jsonl, and syncs it. Errors:
/// those of reading an index, "index_not_written".
expected<retraction_result> retract_kernels(const std::string& index_directory,
                                            const retraction& what);

} // namespace kernelmill

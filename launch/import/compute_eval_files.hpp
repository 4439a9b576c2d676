#pragma once

// INTERNAL to launch/import: where ComputeEval's problems lie, and what a task keeps of one.

#include <string>
#include <vector>

#include "launch/import/compute_eval.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

/// A problem as the suite wrote it, not yet checked.
struct compute_eval_source {
  nlohmann::ordered_json record; ///< an object
  std::string place;             ///< "problems.jsonl, line 3"
  std::string release;
};

/// Finds and parses all problems of a path; `release` is that of lists that do not say theirs.
/// Errors: see read_compute_eval_suite().
expected<std::vector<compute_eval_source>> find_compute_eval(const std::string& path,
                                                             const std::string& release);

/// A pack's lines and what it says of itself.
struct compute_eval_pack {
  std::string lines;    ///< problems.jsonl or solutions.jsonl
  std::string metadata; ///< metadata.json; may be empty
  std::string place;    ///< for error texts
};

/// Reads a .tar.gz, or a list with the metadata.json beside it, where one is. `name` is the list's
/// name in a pack.
expected<compute_eval_pack> read_compute_eval_pack(const std::string& path, const char* name);

/// The release that a pack names; empty where it has no metadata. Errors: "bad_problem".
expected<std::string> release_of_pack(const compute_eval_pack& x);

/// The file of a task that keeps the suite's own record, without the texts that are other files.
inline constexpr const char* compute_eval_suite_file = "suite.json";

/// The reason and the cause of a refusal, without its place.
tl::expected<suite_task, suite_refusal> make_compute_eval_task(const compute_eval_source& from,
                                                               const std::string& id);

/// Whether a text may be part of a task's id: letters, digits, `_`, `-`, and `/` between them.
bool is_problem_id(const std::string& x);

/// "bad_problem": the text is at fault that stands at this place.
tl::unexpected<error> bad_compute_eval(const std::string& place, const std::string& cause);

} // namespace kernelmill

#pragma once

// INTERNAL to launch/import: ComputeEval's problems as folders, the form in which they are written.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill {

/// Reads `folder`/problem-spec.yaml with the files of context/, test/ and solution/ into the form
/// of a problems.jsonl. Errors: "bad_problem", naming file and line or key; those of files that
/// lead out of the folder.
expected<nlohmann::ordered_json> read_problem_spec(const std::string& folder);

} // namespace kernelmill

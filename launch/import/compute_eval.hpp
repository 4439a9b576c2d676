#pragma once

// ComputeEval's problems as tasks of the contract `program`. The problems come from a datapack,
// from its problems.jsonl or from folders with a problem-spec.yaml, wherever the user has them;
// none of them is part of Kernelmill. Their licence permits evaluation only (configs/licences).

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launch/import/suites.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Reads a *-problems.tar.gz, a problems.jsonl, a problem-spec.yaml, or a folder with any of these
/// below it. Options: --release (of a list that does not say its own: its release), --group,
/// --difficulty, --problem. Tasks come in the order of release and id. Errors: "missing_file", and
/// "bad_problem" for what is damaged as a whole: no archive, no JSON, an id that comes twice,
/// contents that differ from the pack's own hashes.
expected<suite_reading> read_compute_eval_suite(const std::string& path,
                                                const suite_options& options = {});

/// One problem in the suite's form, from an imported task's folder: what a graded solution carries.
/// Equal to what was imported, but for keys that the suite's form does not name. Errors: those of
/// reading the folder's files.
expected<nlohmann::ordered_json> compute_eval_record(const std::string& folder);

/// "compute-eval/2026-1/CUDA_31".
std::string compute_eval_id(const std::string& release, const std::string& task_id);

} // namespace kernelmill

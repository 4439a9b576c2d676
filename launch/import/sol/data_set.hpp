#pragma once

// Finds problems on the disk: a folder with definition.json and workload.jsonl, a tree of such
// folders, or a data set with definitions/ and workloads/. Files of safetensors that a workload
// names are read from below the data set alone.

#include <string>

#include "launch/import/reading/suite_reading.hpp"
#include "launch/import/sol/definition.hpp"

namespace kernelmill::sol {

/// All problems below `path` as tasks. Options: --definition GLOB, --op KIND, --workloads N,
/// --first UUID, --blobs DIR. Errors: "missing_file" where nothing is found.
expected<suite_reading> read_data_set(const std::string& path, const suite_options& options,
                                      family suite);

/// Of the suites' table.
expected<suite_reading> read_sol(const std::string& path, const suite_options& options);
expected<suite_reading> read_flashinfer(const std::string& path, const suite_options& options);

/// What keeps a tensor of a safetensors file from being an input of this type and of these sizes;
/// empty: nothing.
std::string wrong_in_safetensors(const std::string& file, const std::string& key,
                                 const std::string& type, const std::vector<int64_t>& sizes);

} // namespace kernelmill::sol

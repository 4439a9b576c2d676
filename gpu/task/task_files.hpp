#pragma once

// INTERNAL to gpu/task: reading task.json into a task, with errors that name the key.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gpu/task/task.hpp"

namespace kernelmill {

/// Returns "did you mean 'cases'?" or the list of what there is.
std::string suggestion(const std::string& wrong, const std::vector<std::string>& known);

/// Fills `x` from the document. `file` is for error texts.
expected<void> read_document(const nlohmann::json& document, const std::string& file, task& x);

/// Reads the function that a module may define in place of ModelNew.
expected<torch_entry> read_entry(const nlohmann::json& value, const std::string& file);

/// Reads the tolerance of a suite; `key` is its name in error texts.
expected<torch_tolerance> read_tolerance(const nlohmann::json& value, const std::string& file,
                                         const std::string& key);

/// Fills the variants of a problem in Python from the key of that name.
expected<void> read_variants(const nlohmann::json& list, const std::string& file,
                             std::vector<torch_variant>& into);

/// Reads what single verbs have: diagnoses, diagnosis, evidence, strategy, port and language. The
/// rest of `x` must have been read.
expected<void> read_verb(const nlohmann::json& document, const std::string& file, task& x);

/// Fills what only a task of the contract `program` has from the key of that name. The head of `x`
/// must have been read.
expected<void> read_program(const nlohmann::json& document, const std::string& file, task& x);

/// Reads context/, tests/ and baseline/ of such a task, which become part of the text of its
/// digest.
expected<void> read_program_folders(task& x, std::string& defining);

/// The starter of a native task of the verb `port`: the one in the language that it is ported from.
const std::string& starter_to_port(const task& x);

/// Checks what the single keys cannot show: names, shapes of every case, sizes.
expected<void> check_signature(const task& x, const std::string& file);

} // namespace kernelmill

#pragma once

// search.json of a run's directory: what a search ended with, its winner measured again. A search
// that was resumed since has outgrown it, and one that was killed at its end has none.

#include <cstdint>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "storage/run_directory.hpp"

namespace kernelmill {

/// Whether a run with this config.json is a search.
bool asks_for_search(const nlohmann::ordered_json& config);

/// Whether a search that has `turns` stored ended with this document.
bool is_end_of_search(const nlohmann::ordered_json& document, uint64_t turns);

/// search.json of a search that has `turns` stored. Nothing: it has not ended with these, so that
/// its winner is not known. A winner of null: no candidate stood.
std::optional<nlohmann::ordered_json> read_search_end(const run_directory& run, uint64_t turns);

/// Replaces it whole. Errors: those of write_json().
expected<void> write_search_end(const run_directory& run, const nlohmann::ordered_json& document);

} // namespace kernelmill

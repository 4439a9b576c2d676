#pragma once

// Reads the queries of views.

#include <initializer_list>
#include <string>

#include "launch/analysis/watch/filter.hpp"
#include "launch/analysis/watch/world.hpp"
#include "messages/base/json_fields.hpp"

namespace kernelmill::watch {

/// Errors: "usage" when the query has a key that is not among `known`, or is no object.
expected<void> check_query(const json& query, std::initializer_list<const char*> known);

/// Filters and sorts rows by the query's `where` and `sort`.
expected<std::vector<json>> chosen_rows(std::vector<json> rows, const json& query,
                                        const std::vector<std::string>& keys,
                                        const std::string& sort_otherwise = {});

} // namespace kernelmill::watch

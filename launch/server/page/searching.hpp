#pragma once

// What the page shows of a search.

#include "launch/analysis/watch/world.hpp"

namespace kernelmill::page {

/// Best so far, tree and frontier of a run whose groups are generations:
/// launch/analysis/searching/search_document.hpp. Errors: "not_found" of a run that is no search.
expected<watch::json> search_of(const watch::world& in, const run_directory& run);

} // namespace kernelmill::page

#pragma once

// What the licences of a stored run allow when data leaves it: by an export, a bundle, an index or
// a trainer.

#include <set>
#include <string>

#include "launch/node/run_rights.hpp"
#include "storage/export/licences/permits.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

/// By the run's manifest, whatever became of its tasks' files; of an older run without sources by
/// the ids of its tasks. Errors: those of reading the run's folder.
expected<exports::permits> permits_of(const run_directory& run, const licence_table& licences,
                                      purpose wanted, const std::set<std::string>& accepted);

/// Whether the manifest, which has the sources of the tasks, is of the run that the store holds.
/// Errors: "licence_forbids", those of the store.
expected<void> check_store_of(const run_directory& run, const store& from);

} // namespace kernelmill

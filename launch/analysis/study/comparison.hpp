#pragma once

// What differs between two runs, groups, episodes or turns, as one document: for `kernelmill
// compare` and for the page.

#include <memory>
#include <string>

#include "launch/analysis/study/run_comparison.hpp"
#include "messages/identity.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::study {

/// A run that is read; both sides may be of one, and two runs may share a store.
struct opened_run {
  run_directory where;
  std::shared_ptr<const store> lineage;
  artifact_store artifacts;
  json config, manifest;
  std::shared_ptr<const run_scores> scores; ///< where they are known; else they are read
};

/// Errors: those of reading the run's own files.
expected<std::shared_ptr<const opened_run>> read_run(const run_directory& where,
                                                     std::shared_ptr<const store> lineage,
                                                     std::shared_ptr<const run_scores> scores = {});

/// A run, or what is named of it.
struct compared_side {
  std::shared_ptr<const opened_run> run;
  name_parts name;
  bool whole_run = false;
};

/// "first", "first/g3.e1".
std::string name_of(const compared_side& x);

/// The keys "kind" ("runs", "groups", "episodes", "turns"), "a", "b", and those of the kind.
/// Errors: "usage" for two kinds, "not_found", those of the stores.
expected<json> compare_sides(const compared_side& a, const compared_side& b,
                             const comparison_options& by);

} // namespace kernelmill::study

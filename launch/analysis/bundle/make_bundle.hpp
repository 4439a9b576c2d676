#pragma once

// Makes the bundle of a run, a group, an episode or a turn from its store.

#include <optional>

#include "launch/analysis/bundle/documents.hpp"
#include "messages/identity.hpp"
#include "storage/artifacts.hpp"
#include "storage/bundle/bundle_file.hpp"
#include "storage/export/licences/licence_gate.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::bundles {

struct bundle_request {
  const store* lineage = nullptr;
  const artifact_store* artifacts = nullptr;
  const exports::permits* may = nullptr; ///< what may be passed on
  run_facts facts;
  std::optional<name_parts> part; ///< nothing: the whole run
  bool proof = false;             ///< records and artifacts as they are, too
  std::string out;
  bool folder = false; ///< `out` is one, not a file
  evp_pkey_st* key = nullptr;
};

struct made_bundle {
  std::string what; ///< "RUN/g3.e1"
  std::string list_sha256;
  uint64_t files = 0, bytes = 0; ///< unpacked
  uint64_t episodes = 0, turns = 0;
};

/// Errors: "not_found" (nothing of that name is stored), "licence_forbids" (a task, an example that
/// a prompt shows or a model's answers must not be passed on), those of the store, the artifacts
/// and the disk. Nothing stands under `out` when it fails.
expected<made_bundle> make_bundle(const bundle_request& what);

} // namespace kernelmill::bundles

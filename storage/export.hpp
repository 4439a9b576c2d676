#pragma once

// Datasets from the lineage, as JSON lines with a manifest beside them:
//   sft         conversations up to the best turn of episodes that are usable_positive_sft; only
//               that turn's answer has weight 1, earlier attempts are context with weight 0
//   rl          one row per finished episode: turns with token ids and logprobs where the policy
//               server offered them, rewards, returns, the member's advantage
//   preference  one pair per group: its best accepted answer against its worst rejected one, both
//               first turns where the group has both (same_context true), else of any turn
// Turns that the infrastructure lost are in none of them; the manifest counts them.

#include <map>
#include <string>
#include <vector>

#include "storage/artifacts.hpp"
#include "storage/store.hpp"

namespace kernelmill {

enum class export_kind : unsigned char { sft, rl, preference };

std::string_view to_string(export_kind x) noexcept;

struct export_request {
  export_kind kind = export_kind::sft;
  std::vector<std::string> runs; ///< empty: every run of the store
  std::string directory;         ///< created; KIND.jsonl and KIND.manifest.json are replaced
};

struct export_report {
  std::string file;
  std::string manifest;
  std::string sha256; ///< of the file
  uint64_t rows = 0;
  std::map<std::string, uint64_t> left_out; ///< by reason
};

/// Reads group by group; both files appear only when they are whole. Errors: "not_found" (a run),
/// those of the store and of the disk.
expected<export_report> export_dataset(const store& from, const artifact_store& artifacts,
                                       const export_request& what);

} // namespace kernelmill

#pragma once

// A dataset of runs, in one of the forms. As a folder it is what Hugging Face's `datasets` loads:
//   data/train.jsonl, data/dev.jsonl   rows, a split a file; only those that have rows (.jsonl.zst
//                                      when packed)
//   README.md                          the data card: what it is, types of the fields, the splits
//   LICENSES                           of tasks, retrieved examples and models
//   PROVENANCE.json                    where every row comes from, what was left out, hashes of
//                                      the files; written last: its presence says that all is there
// Groups are read one by one, so memory is that of the largest group. The same runs give the same
// bytes.

#include <map>

#include "messages/base/json_value.hpp"
#include "storage/export/contamination.hpp"
#include "storage/export/licences/licence_gate.hpp"
#include "storage/export/row_file.hpp"
#include "storage/export/rows/rows.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::exports {

struct source {
  std::string run;
  const store* lineage = nullptr;
  const store* verdicts =
      nullptr; ///< of another version than the run's own; see storage/lineage/verdicts.hpp
  const artifact_store* artifacts = nullptr;
  uint32_t shared_turns = 0;                 ///< of a fork's episodes: their credit is elsewhere
  double temperature = 1;                    ///< that the run asked its policy for
  std::map<std::string, std::string> splits; ///< of tasks that have their own
  permits may;                               ///< what is not in there is not exported
  nlohmann::ordered_json facts = nlohmann::ordered_json::object(); ///< for PROVENANCE.json
};

struct request {
  form as = form::sft;
  filter wanted;
  bool zstd = false;
  std::set<std::string> accepted_terms; ///< that `permits` were decided with; for PROVENANCE.json
  contamination_check contamination;
  bool force = false;    ///< replaces the files of an earlier export
  std::string directory; ///< empty: rows go to `stream`, and there is no card
  byte_taker stream;
  nlohmann::ordered_json made_by = nlohmann::ordered_json::object(); ///< for PROVENANCE.json
};

struct task_facts {
  std::string split;
  bool own_split = false; ///< the task says so itself
  uint64_t rows = 0;
  permit may;
};

/// A task whose split differs between the runs of an export.
struct split_conflict {
  std::map<std::string, std::string> by_run;
  std::string taken;
};

struct report {
  std::vector<written_file> files;
  std::map<std::string, task_facts> tasks;
  std::set<std::string> models;
  left_out without;
  std::map<std::string, split_conflict> split_conflicts; ///< by task
  refusals refused;                                      ///< by task, example or model
  std::map<std::string, permit> sources;                 ///< of what was exported, by source
  std::map<std::string, std::string> model_licences;     ///< that runs name, by run
  contamination_report contamination;
  std::map<std::string, uint64_t> transitions; ///< of turns that were read, and of calls of tools
  std::map<std::string, uint64_t> patch_kinds; ///< of candidates that were made by patches
  uint64_t rows = 0, groups = 0, turns = 0;    ///< groups and turns that were read
};

/// Errors: "directory_not_empty" (there is an export, or something else, and no `force`), those of
/// the store, the artifacts and the disk; "licence_forbids" when no task of the runs may be
/// exported so, "contaminated" when it was to be refused and is found. Neither leaves a folder.
expected<report> write_dataset(const std::vector<source>& from, const request& what);

/// Writes the rows of one group to what.stream, and adds to `done` what it counted: for an export
/// that follows a run. REQUIRES: what.directory is empty
expected<void> write_group(const source& from, uint32_t group, const request& what, report& done);

// -- parts --------------------------------------------------------------------------------------

nlohmann::ordered_json provenance(const std::vector<source>& from, const request& what,
                                  const report& done);
std::string licences_text(const request& what, const report& done);
std::string data_card(const std::vector<source>& from, const request& what, const report& done);

} // namespace kernelmill::exports

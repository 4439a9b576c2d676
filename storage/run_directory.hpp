#pragma once

// A run's folder:
//   config.json     the resolved configuration
//   manifest.json   what made the run: name, versions, where its store is; its presence says
//                   that the folder holds a run, so it is written last
//   lineage/        the store of this run, unless the manifest names a shared one
//   artifacts/      long texts and binaries by content
//   traces.jsonl    a line per turn and per ended episode  } projections of the lineage, that
//   metrics.jsonl   a line per turn and per ended group    } grow as it does: run_journal.hpp
//   tensorboard/    an event file for TensorBoard: a step per ended group; likewise
//   choices.jsonl   what people decided of candidates: lineage/candidate_choices.hpp
//   tags.json       words that people put on the run: run_tags.hpp
//   logs/  control.sock

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill {

inline constexpr int run_schema_version = 1;

struct run_directory {
  std::string path;      ///< without a slash at its end
  std::string name;      ///< the run's, as in the records
  std::string store;     ///< the folder of its lineage store
  std::string artifacts; ///< the folder of its artifacts: beside a shared store, else its own

  std::string config_file() const { return path + "/config.json"; }
  std::string manifest_file() const { return path + "/manifest.json"; }
  std::string metrics_file() const { return path + "/metrics.jsonl"; }
  std::string traces_file() const { return path + "/traces.jsonl"; }
  std::string tensorboard() const { return path + "/tensorboard"; }
  std::string logs() const { return path + "/logs"; }
  std::string control_socket() const { return path + "/control.sock"; }
};

struct new_run {
  std::string path;         ///< runs/NAME by default
  std::string name;         ///< letters, digits, '.', '_', '-'; empty: the last part of the path
  std::string shared_store; ///< a folder; empty: the run has its own store
};

/// Up to 128 letters, digits, '.', '_' and '-', of which the first is neither '.' nor '-'.
bool is_run_name(const std::string& name);

/// Lays a run out. `manifest` gets "schema_version", "run", "store" and "created_at" added. What a
/// process left that was killed inside this function is taken over, since nothing was recorded.
/// Errors: "run_exists" (hint: resume), "directory_not_empty", "invalid_run_name", "disk_full".
expected<run_directory> create_run(const new_run& what, const nlohmann::ordered_json& config,
                                   const nlohmann::ordered_json& manifest);

/// Errors: "not_found", "not_a_run", "run_torn" (it was never laid out to the end),
/// "run_incomplete" (a part of it that was there is gone; the message names it), "store_newer" (its
/// manifest is of a newer version). `without_store`: its store may be gone.
expected<run_directory> open_run(const std::string& path, bool without_store = false);

/// Says of a run that `what` of it is gone, and what can be done: the error "run_incomplete".
/// `records`: it is these, so that restore_run() helps.
error run_incomplete(const run_directory& run, const std::string& what, bool records = false);

/// Whether another system made it: nothing of it is to be run.
bool is_imported(const run_directory& run);

/// The command that makes its records anew: from its rows, or, of an imported run, from the file
/// that it was imported from.
std::string command_for_lost_records(const run_directory& run);

/// Whether its store has a file of more than 0 bytes; also where that is unknown.
bool has_store(const run_directory& run);

/// Whether its journal has a line: then its store once had records.
bool has_journal(const run_directory& run);

/// Takes a path of a run or a name within `root`. Errors: those of open_run; the hint of
/// "not_found" names runs that are there.
expected<run_directory> find_run(const std::string& name_or_path, const std::string& root = "runs",
                                 bool without_store = false);

/// Returns the names of the runs within `root`, in alphabetical order.
std::vector<std::string> list_runs(const std::string& root = "runs");

/// Errors: "not_found", "invalid_json" with file, line and column.
expected<nlohmann::ordered_json> read_json(const std::string& path);

/// Writes the whole file or leaves the old one.
expected<void> write_json(const std::string& path, const nlohmann::ordered_json& value);

/// Returns one line of JSON; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const nlohmann::ordered_json& value);

} // namespace kernelmill

#pragma once

// A run as people look at it, read from its store.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "messages/error.hpp"
#include "messages/evidence.hpp"
#include "storage/lineage/group_reader.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

using best_speedup = std::optional<reporting::measured_speedup>;

struct episode_view {
  uint32_t group = 0;
  uint32_t member = 0;
  std::string task;
  uint32_t turns = 0;
  std::string outcome; ///< "accepted", "rejected", "infrastructure", or "open"
  std::string stop_reason;
  double best_reward = std::numeric_limits<double>::quiet_NaN(); ///< of the rewarded turns
  double first_return = 0;             ///< what a trainer sees first; NaN: not known
  uint32_t not_timed = 0;              ///< turns that are right and have no time
  best_speedup best;                   ///< launch/analysis/report/speedups.hpp
  std::vector<std::string> categories; ///< of its turns, in order
  episode_evidence evidence;           ///< messages/evidence.hpp
};

struct task_view {
  uint32_t episodes = 0, accepted = 0, rejected = 0, infrastructure = 0, open = 0;
  uint64_t turns = 0;
  uint64_t not_timed = 0; ///< turns
  uint32_t unpaid = 0;    ///< episodes with such a turn that the machine could not time
  best_speedup best;
};

struct run_view {
  std::string run;
  std::string directory;
  /// How its latest session ended: "finished", "incomplete", "cancelled", "failed"; or "open": it
  /// is in progress, or was cut off.
  std::string state = "open";
  error fault{fault_class::none, {}, {}, {}}; ///< why, when it did not finish
  uint32_t sessions = 0;                      ///< 1, and one more for each resume
  std::vector<episode_view> episodes;
  std::map<std::string, task_view> tasks;
  reporting::speedup_figures speedups;
  run_evidence evidence;
  watch::working_time worked;
  std::map<std::string, watch::stage_sum> stages; ///< of all turns, of a fork its own
  std::map<std::string, double> slots;            ///< of the same: seconds in a slot, by part
  uint64_t lost_open = 0; ///< episodes that its latest end left open by a fault of a machine
  std::vector<std::string> alarms; ///< of lost turns that go with something that the policy does
  std::string readiness; ///< JSON: what the run may be used for; empty: it has not finished
};

episode_evidence evidence_of_episode(const stored_episode& x);

/// Evidence, near misses, and what the run may be used for; for people.
std::string evidence_text(const run_view& view);

/// The same of an episode.
std::string evidence_text(const episode_evidence& x);
/// A data label of docs/reference/glossary.md: "positive example for SFT (usable_positive_sft)", so
/// that the word of `export --governance` is there, too.
std::string label_text(const std::string& kind);
nlohmann::ordered_json evidence_json(const episode_evidence& x);

using watch::open_for_reading;

/// Reads all episodes of a run; `group` narrows it to one.
expected<run_view> view_run(const run_directory& run, const uint32_t* group = nullptr);

/// "3.71 [3.65, 3.78]", or "-".
std::string speedup_text(const best_speedup& x);

/// The same as the cells of a table, below cli::interval_headers().
std::vector<std::string> speedup_cells(const best_speedup& x);

/// The run's speedups as a line, or nothing where nothing was timed.
std::string speedups_text(const run_view& view);

/// "failed: why", what to do about it and how to continue; only the state when there is no more to
/// say.
std::string state_text(const run_view& view);

/// The table of tasks under a run's summary.
std::string task_table(const run_view& view);

/// What there is to say of turns that are right and have no time, as a line, or nothing. `unpaid`:
/// episodes that are in no comparison for that.
std::string not_timed_text(uint64_t turns, uint64_t unpaid);
std::string not_timed_text(const run_view& view);

/// An alarm of a run as a paragraph.
std::string alarm_text(const std::string& alarm);

nlohmann::ordered_json to_json(const run_view& view);

} // namespace kernelmill::commands

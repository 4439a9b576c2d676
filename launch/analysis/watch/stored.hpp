#pragma once

// A run as its store knows it, in one scan without copies: what `runs`, `stats` and `explain` need
// of a run, in progress or over.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/watch/working_time.hpp"
#include "launch/analysis/watch/world.hpp"
#include "messages/evidence.hpp"

namespace kernelmill::watch {

/// How long turns spent in one stage: counts of those up to each of `limits`, and of the rest.
struct stage_durations {
  static constexpr std::array<double, 12> limits{0.01, 0.03, 0.1, 0.3, 1,    3,
                                                 10,   30,   100, 300, 1000, 3000}; ///< seconds
  std::array<uint64_t, limits.size() + 1> counts{};
  double sum = 0;

  void add(double seconds);
};

/// What the end of a session says of episodes that it left open by a fault of a machine or a
/// server.
uint64_t lost_open_of(wire::RunRecord::Reader end);

/// The same of a run's latest end, from its own records alone. Errors: those of the store.
expected<uint64_t> lost_open_of(const store& from, const std::string& run);

/// Of all turns. They run side by side, so that the sum may be longer than the run.
struct stage_sum {
  double seconds = 0, work = 0; ///< launch/analysis/watch/stage_times.hpp
};

void add_stages(std::map<std::string, stage_sum>& to, wire::TurnRecord::Reader turn);

struct stored_summary {
  std::string state = "open"; ///< how its latest session ended; "open": in progress, or cut off
  error fault{fault_class::none, {}, {}, {}};
  uint32_t sessions = 0;
  double first_turn_at = 0; ///< seconds since 1970; 0: none
  working_time worked;

  uint64_t groups = 0;
  uint64_t episodes = 0;    ///< that have ended
  uint64_t ended_turns = 0; ///< of these
  uint64_t accepted = 0, rejected = 0;
  uint64_t closed_as_lost = 0; ///< that have ended with the outcome `infrastructure`
  uint64_t lost_open = 0;      ///< left open by the latest end, by a fault of a machine or a server
  double reward_sum = 0;       ///< of the best turn of each ended episode that has a rewarded one
  uint64_t rewarded = 0;
  run_evidence evidence;
  reporting::speedup_figures speedups;
  std::string best_turn; ///< whose is the best speedup: "g3.e1.t2"

  // Turns, down the funnel, which those without a verdict do not enter.
  uint64_t turns = 0;
  uint64_t own_turns = 0;  ///< without those that a fork shares
  uint64_t open_turns = 0; ///< that asked for no verdict
  uint64_t asked_turns() const { return turns - open_turns; }
  uint64_t format = 0, built = 0, correct = 0, timed = 0, faster = 0;
  std::map<std::string, uint64_t> categories;       ///< of verdicts
  std::map<std::string, stage_sum> stages;          ///< summed over turns, a fork's own alone
  std::map<std::string, stage_durations> durations; ///< of turns that had the stage
  std::map<std::string, uint64_t> findings;         ///< of integrity, by rule
  uint64_t prompt_tokens = 0, completion_tokens = 0;
  std::set<std::string> models; ///< of the completions, as the servers named them

  /// Faults of the machine or of a server that cost turns: category, how often, and the latest.
  struct trouble {
    uint64_t turns = 0;
    std::string message, hint, turn;
  };
  std::map<std::string, trouble> troubles;

  double mean_reward() const {
    return rewarded > 0 ? reward_sum / static_cast<double>(rewarded)
                        : std::numeric_limits<double>::quiet_NaN();
  }
};

/// The store of a run for reading. Errors: those of store::open, "run_incomplete".
expected<store> open_for_reading(const run_directory& run);

/// The same, or the one that a run of this process already holds open.
expected<std::shared_ptr<const store>> open_store_of(const world& in, const run_directory& run);

/// Adds a record of a run. REQUIRES: they come in the order of the store.
void add_record(stored_summary& to, wire::Record::Reader x, uint32_t shared_turns);

/// Reads the whole run once.
expected<stored_summary> summarize(const world& in, const run_directory& run);

/// What `in` has kept of the run, or else reads it.
expected<std::shared_ptr<const stored_summary>> find_summary(const world& in,
                                                             const run_directory& run);

/// Of a run that was open as `before` was read and does not answer: it may have ended in between.
expected<stored_summary> summarize_silent(const world& in, const run_directory& run,
                                          stored_summary before);

/// What the run's configuration says of it.
struct run_plan {
  uint64_t episodes = 0; ///< by its tasks, groups and members; 0: it does not say
  bool search = false;
};

run_plan read_plan(const run_directory& run);

} // namespace kernelmill::watch

#pragma once

// Where a run stands now: what its store says, and what its actors say where a process works on it.
// `runs`, `status`, `stats`, `explain` and the page take a run's state and counts from here.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/stored.hpp"

namespace kernelmill::watch {

struct run_now {
  stored_summary stored;
  std::optional<live_view> live; ///< of a run that a process works on

  /// "running", "paused", "ending" or "stuck"; of a run that no process works on how its latest
  /// session ended, or "interrupted".
  std::string state() const;

  /// launch/analysis/watch/working_time.hpp
  double seconds() const;

  /// Episodes that a fault of a machine or of a server has ended, with a record of their own or
  /// left for resume: the same number as at the end of `run`.
  uint64_t infrastructure() const;

  /// Of a search that has finished: a process was killed before it had measured the winner again,
  /// or does so now, or a head has no GPU to do it.
  bool lacks_winner(const run_directory& run, const run_plan& plan) const;

  /// What continues it: a command in a sentence. Empty: it has finished, or a process works on it.
  std::string next(const run_directory& run) const;
};

/// What is told of a run that lacks its winner, and the command that measures it.
inline constexpr const char* winner_not_measured = "its winner is not measured yet";
std::string how_to_measure_winner(const std::string& directory);

/// How a command continues a run whose latest session ended as `state`, "interrupted" and "open" of
/// one that was cut off. Empty: it has finished.
std::string how_to_continue(const std::string& state, const std::string& directory);

/// `more_workers`: as of read_live(). Errors: those of summarize().
expected<run_now> look_at_run(const world& in, const run_directory& run,
                              const std::map<uint64_t, std::string>& more_workers = {});

} // namespace kernelmill::watch

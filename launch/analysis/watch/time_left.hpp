#pragma once

// How long a run still takes, by means of what it did so far.
//
// n episodes that live at once each do a turn in the longer one of
//
//   n * pace   pace: mean seconds from one committed turn to the next, of all episodes
//   work       mean seconds of a turn without its waiting: no turn is quicker, however few live
//
// Episodes live on until their last turn, but a share of them ends with each turn before it: as
// many as did so far. Such rounds of turns are added up until no episode is left, and half a turn's
// work for the last one, which comes behind the others.

#include <cstdint>
#include <optional>

namespace kernelmill::watch {

/// What a run has done. Seconds and turns that were seen are those after a first turn: until that
/// is committed, nothing tells the pace.
struct run_pace {
  uint64_t episodes = 0; ///< planned
  uint64_t ended = 0, live = 0;
  uint64_t at_once = 0;     ///< the most that have lived at once; 0: as many as live now
  uint64_t turns = 0;       ///< committed
  uint64_t ended_turns = 0; ///< of them those of ended episodes
  uint32_t max_turns = 1;   ///< of an episode

  double seconds = 0;      ///< that were looked at
  double seen_turns = 0;   ///< turns that were committed in them
  double live_seconds = 0; ///< of all episodes that lived, added up
  double wait_seconds = 0; ///< of these, those in which an episode waited for its turn
};

/// The share of turns before the last one with which an episode ended; 0 where none has.
double early_end_share(const run_pace& x);

struct forecast {
  double turns = 0;              ///< to come; those that are begun count as whole ones
  std::optional<double> seconds; ///< nothing: fewer than two turns were seen, or less than a
                                 ///< twentieth of those that are to come
};
forecast forecast_of(const run_pace& x);

} // namespace kernelmill::watch

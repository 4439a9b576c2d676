#pragma once

// What each task of a run came to, by episode: what runs are compared by. One pass over the store;
// memory grows with the episodes, by a few numbers each.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/analysis/report/speedups.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::study {

using reporting::measured_speedup;

struct episode_score {
  std::optional<double> reward; ///< the best of its rewarded turns; none: there are none
  bool correct = false;         ///< a turn was accepted
  std::optional<measured_speedup> best_speedup;
};

struct task_scores {
  std::vector<episode_score> episodes;
  uint64_t infrastructure = 0, open = 0; ///< episodes that are left out

  uint64_t correct() const;
  std::optional<double> reward() const; ///< mean over the episodes that have one
  std::optional<measured_speedup> best_speedup() const;
  std::optional<double> geomean_speedup() const;
};

using run_scores = std::map<std::string, task_scores>; ///< by id of the task

/// Takes a run's records in the order of the store. Episodes that the infrastructure lost or that
/// have not ended are left out, as in `kernelmill report`.
class score_reader {
public:
  /// `shared_turns`: first turns of a fork, which are another run's.
  explicit score_reader(uint32_t shared_turns) : shared_turns_(shared_turns) {}

  void add(wire::Record::Reader record);
  run_scores finish();

private:
  /// An episode while its records are read.
  struct open_episode {
    std::string task;
    episode_score score;
    uint64_t judged = 0;
  };

  void add(wire::TurnRecord::Reader turn);
  void add(wire::EpisodeRecord::Reader end);

  uint32_t shared_turns_;
  std::map<std::pair<uint32_t, uint32_t>, open_episode> open_; ///< by group and member
  run_scores result_;
};

/// Reads the whole run once. Errors: those of the store.
expected<run_scores> read_scores(const store& from, const std::string& run, uint32_t shared_turns);

} // namespace kernelmill::study

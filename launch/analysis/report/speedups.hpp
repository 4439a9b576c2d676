#pragma once

// The figures that are named after speedups, each computed here alone:
// docs/reference/glossary.md#figures has their names and definitions.
//
//   timed                turns that are correct, were measured, and are no copies of a kernel that
//                        their prompt shows
//   best_speedup         of the accepted, timed turn with the highest lower bound
//   best_speedup_lower   the lower bound of that one
//   geomean_speedup      over episodes: the geometric mean of the estimates of their best turns

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/lineage.capnp.h"
#include "storage/run_directory.hpp"

namespace kernelmill::reporting {

/// Baseline's time / candidate's time, with its 95 % interval.
struct measured_speedup {
  double estimate = 0, low = 0, high = 0;

  bool overlaps(const measured_speedup& x) const { return low <= x.high && x.low <= high; }
};

measured_speedup of_interval(wire::Interval::Reader x);

/// The first turns of a fork are another run's: their speedups count there. 0: the run is no fork.
/// Errors: those of reading the manifest.
expected<uint32_t> shared_turns_of(const run_directory& run);

/// Whether a verdict's gate of that name is passed.
bool passes(wire::Verdict::Reader x, std::string_view gate);

/// Whether a turn counts as timed: it is correct (accepted, or past the correctness gate), was
/// measured, and is no copy of a kernel that its prompt shows ("unchanged"). What was measured of
/// another, such as a right kernel with a wrong diagnosis, is no time of an answer.
bool is_timed(wire::TurnRecord::Reader x);

/// The speedup of a turn that was accepted and timed and is no shared one; nothing of another.
std::optional<measured_speedup> counted_speedup(wire::TurnRecord::Reader turn,
                                                uint32_t shared_turns);

/// Whether `x` replaced `best`, which keeps the higher lower bound, and of equal ones the first.
bool keep_best(std::optional<measured_speedup>& best, const std::optional<measured_speedup>& x);

/// {"estimate", "low", "high"}, or null.
nlohmann::ordered_json to_json(const std::optional<measured_speedup>& x);

/// best_speedup_lower, or null.
nlohmann::ordered_json lower_json(const std::optional<measured_speedup>& x);

/// geomean_speedup of the estimates of best turns; nothing where there is none.
/// REQUIRES: every value is above 0.
std::optional<double> geomean_speedup(std::span<const double> estimates);

/// What a run's or a task's records come to, added up record by record: turns of an episode in
/// order, then its own record.
class speedup_figures {
public:
  speedup_figures() = default;
  explicit speedup_figures(uint32_t shared_turns) : shared_turns_(shared_turns) {}

  /// Whether the turn is the best one so far.
  bool add(wire::TurnRecord::Reader turn);

  /// Episodes that the infrastructure lost, and those that have not ended, are not in the mean.
  void add(wire::EpisodeRecord::Reader end);

  const std::optional<measured_speedup>& best() const noexcept { return best_; }
  std::optional<double> geomean() const { return geomean_speedup(estimates_); }
  uint64_t timed_episodes() const noexcept { return estimates_.size(); }

private:
  uint32_t shared_turns_ = 0;
  std::optional<measured_speedup> best_;
  std::map<std::pair<uint32_t, uint32_t>, measured_speedup> open_; ///< by group and member
  std::vector<double> estimates_;
};

} // namespace kernelmill::reporting
